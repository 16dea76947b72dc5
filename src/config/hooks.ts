import { HOOK_POINTS, type HookPoint, isHookPoint } from "../core/points.js";
import type { Place } from "../errors.js";
import { at, type Diagnostics, quoted } from "./diagnostics.js";
import { Fields } from "./fields.js";
import { flag, name, oneOf, text, whole } from "./readers.js";
import { MAX_HOOK_TIMEOUT_MS } from "./settings.js";
import { didYouMean } from "./spelling.js";
import type { Hook } from "./types.js";
import type { Block, Label } from "./value.js";

const MAX_SUBSCRIBERS = 256;

type HookParts = {
  readonly blocks: readonly Block[];
  /** Names in `required_providers`; undefined where they are not all known. */
  readonly declared: ReadonlySet<string> | undefined;
  /** A transform behind a veto is an error rather than a warning. */
  readonly strict: boolean;
};

/** The subscriptions, in textual order. */
export function readHooks({ blocks, declared, strict }: HookParts, report: Diagnostics): readonly Hook[] {
  const chains = new Map<HookPoint, Chain>();
  const hooks: Hook[] = [];
  for (const block of blocks) {
    const read = readHook(block, declared, report);
    if (read === undefined) continue;
    const chain = chains.get(read.hook.point) ?? new Chain(read.hook.point, strict, report);
    chains.set(read.hook.point, chain);
    chain.add(read);
    hooks.push(read.hook);
  }
  return hooks;
}

type ReadHook = { readonly hook: Hook; readonly idPlace: Place };

function readHook(block: Block, declared: ReadonlySet<string> | undefined, report: Diagnostics): ReadHook | undefined {
  const point = readPoint(block, report);
  const fields = new Fields("hook", block.place, block.body, report);
  const provider = fields.required("provider", text);
  const mode = fields.required("mode", oneOf("observe", "transform", "veto"));
  const id = fields.optional("id", name);
  const timeoutMs = fields.optional("timeout_ms", whole(1, MAX_HOOK_TIMEOUT_MS));
  const recording = fields.optional("recording", oneOf("barrier", "write-ahead"));
  const shadow = fields.optional("shadow", flag) ?? false;
  fields.close();
  if (provider !== undefined && declared !== undefined && !declared.has(provider)) {
    report.error(fields.placeOf("provider"), `provider ${quoted(provider)} is not in required_providers`, {
      hint: declared.size > 0 ? didYouMean(provider, [...declared]) : undefined,
    });
  }
  if (mode === "veto" && point !== undefined && !HOOK_POINTS[point].vetoBearing) {
    report.error(fields.placeOf("mode"), `nothing can be vetoed at ${point}`, {
      hint: `a veto stands at ${vetoBearingPoints().join(" or ")}`,
    });
  }
  if (point === undefined || provider === undefined || mode === undefined) return undefined;
  const hook: Hook = {
    point,
    provider,
    mode,
    ...(id !== undefined && { id }),
    ...(timeoutMs !== undefined && { timeoutMs }),
    ...(recording !== undefined && { recording }),
    shadow,
    place: block.place,
  };
  return { hook, idPlace: fields.has("id") ? fields.placeOf("id") : block.place };
}

function readPoint(block: Block, report: Diagnostics): HookPoint | undefined {
  const [label, ...more] = block.labels;
  if (label === undefined || more.length > 0) {
    report.error(more[0]?.place ?? block.place, "hook takes one label, its point", { hint: 'hook "plan-ready" { … }' });
    return undefined;
  }
  if (isHookPoint(label.text)) return label.text;
  reportUnknownPoint(label, report);
  return undefined;
}

function reportUnknownPoint({ text: point, place }: Label, report: Diagnostics): void {
  if (point === "context-assemble") {
    report.error(place, "context-assemble is not dispatched here: it is served by ContextService.Contribute");
  } else {
    report.error(place, `unknown hook point ${quoted(point)}`, { hint: didYouMean(point, Object.keys(HOOK_POINTS)) });
  }
}

function vetoBearingPoints(): readonly string[] {
  return Object.keys(HOOK_POINTS).filter((point) => isHookPoint(point) && HOOK_POINTS[point].vetoBearing);
}

/** What the hooks of one point must keep to among each other. */
class Chain {
  readonly #point: HookPoint;
  readonly #strict: boolean;
  readonly #report: Diagnostics;
  /** The first hook of each provider and id. */
  readonly #ids = new Map<string, Hook>();
  #count = 0;
  #veto: Hook | undefined;

  constructor(point: HookPoint, strict: boolean, report: Diagnostics) {
    this.#point = point;
    this.#strict = strict;
    this.#report = report;
  }

  add({ hook, idPlace }: ReadHook): void {
    this.#checkCount(hook);
    this.#checkId(hook, idPlace);
    this.#checkGate(hook);
  }

  #checkCount(hook: Hook): void {
    this.#count++;
    if (this.#count !== MAX_SUBSCRIBERS + 1) return;
    this.#report.error(hook.place, `more than ${MAX_SUBSCRIBERS} subscribers at ${this.#point}`, {
      code: "HL_LIMIT_SUBSCRIBERS",
    });
  }

  #checkId(hook: Hook, place: Place): void {
    const key = JSON.stringify([hook.provider, hook.id ?? null]);
    const first = this.#ids.get(key);
    if (first === undefined) {
      this.#ids.set(key, hook);
      return;
    }
    const which = hook.id === undefined ? "two hooks without an id" : `two hooks with the id ${quoted(hook.id)}`;
    this.#report.error(
      place,
      `provider ${quoted(hook.provider)} has ${which} at ${this.#point}; first at ${at(first.place)}`,
      {
        hint: "give each a different id",
      },
    );
  }

  /** What comes after a gate and changes the payload makes the gate have judged something else. */
  #checkGate(hook: Hook): void {
    if (hook.shadow || !HOOK_POINTS[this.#point].vetoBearing) return;
    if (hook.mode === "veto") this.#veto ??= hook;
    if (hook.mode !== "transform" || this.#veto === undefined) return;
    const message = `this transform runs after the veto at ${at(this.#veto.place)}, which then judged another payload`;
    const hint = "declare transforms before vetoes";
    if (this.#strict) this.#report.error(hook.place, message, { hint });
    else this.#report.warning(hook.place, message, { hint });
  }
}
