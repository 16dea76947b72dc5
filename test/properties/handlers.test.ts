/** Message hooks from plugin to ledger, with all that plugins get wrong, against a plain loop for each composition. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { MessageHookName } from "#src/messages/hooks.js";
import {
  type Composition,
  type Conduct,
  type Foretold,
  foretell,
  type Meaning,
  type Role,
} from "../support/oracle-handlers.js";
import { cancellations, conducts, timeoutsFor } from "../support/oracle-handlers-scripts.js";
import { schedules } from "../support/oracle-scripts.js";
import { type Actor, act, type Scene } from "../support/stage-handlers.js";

const NOTHING: Meaning = { says: "nothing" };

/** What handlers return, and what that means by the specification. */
type Saying = { readonly returns: () => unknown; readonly means: Meaning };

function means(meaning: Meaning, ...values: readonly (() => unknown)[]): readonly Saying[] {
  return values.map((returns) => ({ returns, means: meaning }));
}

const CLAIMED = [{ handled: true }, { handled: true, text: "" }, { handled: 1, text: "one" }, { handled: "yes" }];

const SAYINGS: { readonly [composition in Composition]: readonly Saying[] } = {
  claim: [
    ...means(
      NOTHING,
      () => undefined,
      () => null,
      () => ({}),
      () => ({ handled: false, text: "dropped" }),
      () => ({ handled: 0 }),
      () => ({ handled: "" }),
      () => ({ text: "nobody reads it" }),
      () => true,
      () => "handled",
    ),
    ...CLAIMED.flatMap((result) => means({ says: "claim", result }, () => ({ ...result }))),
  ],
  rewrite: [
    ...means(
      NOTHING,
      () => undefined,
      () => null,
      () => ({}),
      () => ({ content: null, metadata: null, cancelReason: null }),
      () => ({ content: undefined, cancel: false }),
      () => ({ cancel: "true" }),
      () => ({ cancel: 1 }),
    ),
    ...means(defines({ content: "" }), () => ({ content: "" })),
    ...means(
      defines({ content: "a" }),
      () => ({ content: "a", cancel: false }),
      () => ({ content: "a", cancel: 1 }),
    ),
    ...means(defines({ content: "b" }), () => ({ content: "b", cancelReason: null })),
    ...means(defines({ metadata: { a: 1 } }), () => ({ metadata: { a: 1 } })),
    ...means(defines({ metadata: { b: 2 } }), () => ({ metadata: { b: 2 }, content: undefined })),
    ...means(defines({ cancelReason: "why" }), () => ({ cancelReason: "why" })),
    ...means({ says: "define", fields: {}, cancel: true }, () => ({ cancel: true })),
    ...means({ says: "define", fields: { content: "never sent", cancelReason: "" }, cancel: true }, () => ({
      cancel: true,
      content: "never sent",
      cancelReason: "",
    })),
  ],
  waterfall: [
    ...means(
      NOTHING,
      () => undefined,
      () => null,
      () => false,
      () => 0,
      () => "",
      () => ({}),
      () => ({ payload: undefined }),
      () => ({ cancel: 1 }),
      () => ({ cancel: false, reason: "no decision" }),
    ),
    ...means({ says: "replace", payload: { text: "a" } }, () => ({ payload: { text: "a" } })),
    ...means({ says: "replace", payload: { text: "" } }, () => ({ payload: { text: "" }, cancel: "true" })),
    ...means({ says: "replace", payload: {} }, () => ({ payload: {} })),
    ...means({ says: "replace", payload: { mediaUrls: ["n"] } }, () => ({
      payload: { mediaUrls: ["n"], trustedLocalMedia: true },
    })),
    ...means(
      { says: "unusable" },
      () => ({ payload: null }),
      () => ({ payload: { text: "a", send: () => {} } }),
      () => ({ payload: { text: Symbol("a") } }),
    ),
    ...means({ says: "cancel" }, () => ({ cancel: true })),
    ...means({ says: "cancel", reason: "late" }, () => ({
      cancel: true,
      reason: "late",
      payload: { text: "never sent" },
    })),
  ],
  notify: means(
    NOTHING,
    () => undefined,
    () => ({ cancel: true, handled: true }),
    () => 7,
  ),
};

function defines(fields: Extract<Meaning, { says: "define" }>["fields"]): Meaning {
  return { says: "define", fields, cancel: false };
}

const HOOKS: { readonly [composition in Composition]: readonly MessageHookName[] } = {
  claim: ["before_dispatch", "before_agent_reply", "reply_dispatch"],
  rewrite: ["message_sending"],
  waterfall: ["reply_payload_sending"],
  notify: ["message_sent"],
};

/** Who may run, told from the specification's table: what the context says under which name, and what a restricted handler needs. */
type Eligibility = {
  readonly option: string;
  readonly field: string;
  readonly values: readonly string[];
  readonly needsValue: boolean;
};
const ELIGIBILITY: { readonly [hook in MessageHookName]?: Eligibility } = {
  before_agent_reply: {
    option: "eligibleTriggers",
    field: "trigger",
    values: ["user", "cron", "heartbeat"],
    needsValue: true,
  },
  reply_dispatch: {
    option: "eligibleDispatchKinds",
    field: "dispatchKind",
    values: ["acp", "agent"],
    needsValue: false,
  },
};

function isEligible(hook: MessageHookName, options: Actor["options"], context: Scene["context"]): boolean {
  const rules = ELIGIBILITY[hook];
  if (rules === undefined) return true;
  const listed = options[rules.option];
  const isList =
    Array.isArray(listed) &&
    listed.length > 0 &&
    Object.keys(listed).length === listed.length &&
    listed.every((value) => rules.values.includes(value));
  if (!isList) return true;
  const value = context[rules.field];
  return typeof value === "string" && rules.values.includes(value) ? listed.includes(value) : !rules.needsValue;
}

/** A list of known values, or something that is none. */
function lists({ values }: Eligibility): fc.Arbitrary<unknown> {
  const holes: unknown[] = [values[0]];
  holes.length = 2;
  return fc.oneof(
    { weight: 4, arbitrary: fc.subarray([...values], { minLength: 1 }) },
    {
      weight: 3,
      arbitrary: fc.constantFrom<unknown>([], holes, [values[0], "other"], [undefined], values[0], null, {
        0: values[0],
      }),
    },
  );
}

const PRIORITIES = fc.constantFrom<unknown>(undefined, 0, 1, 1, -1, Number.NaN, Number.POSITIVE_INFINITY, "5");

function priorityOf({ options }: Actor): number {
  const { priority } = options;
  return typeof priority === "number" && Number.isFinite(priority) ? priority : 0;
}

/** ms of message hooks that have a default. */
const DEFAULTS: { readonly [hook in MessageHookName]?: number } = {
  message_sending: 15_000,
  reply_payload_sending: 15_000,
};

type Cast = { readonly actor: Actor; readonly conduct: Conduct };

function cast(hook: MessageHookName, composition: Composition): fc.Arbitrary<Cast> {
  const rules = ELIGIBILITY[hook];
  const saying = fc.constantFrom(...SAYINGS[composition]);
  const rarely = fc.nat({ max: 5 }).map((n) => n === 0);
  return fc
    .record({
      saying,
      now: fc.boolean(),
      vandal: rarely,
      meddles: fc.constantFrom("registers" as const, "leaves" as const, null, null),
    })
    .chain(({ saying: { returns, means }, now, ...rest }) =>
      conducts(fc.constant(means)).chain((conduct) =>
        fc
          .record({
            timeoutMs: fc
              .tuple(timeoutsFor(conduct), fc.constantFrom(0, 0.25))
              .map(([ms, less]): unknown => (ms === null ? undefined : ms - less)),
            priority: PRIORITIES,
            eligible: rules === undefined ? fc.constant(undefined) : fc.option(lists(rules), { nil: undefined }),
          })
          .map(({ eligible, ...options }): Cast => {
            const listed = rules === undefined || eligible === undefined ? {} : { [rules.option]: eligible };
            const acts =
              conduct.does === "answer"
                ? { ...conduct, returns }
                : conduct.does === "throw"
                  ? { ...conduct, now }
                  : conduct;
            return { conduct, actor: { id: "", options: { ...options, ...listed }, acts, ...rest } };
          }),
      ),
    );
}

function scenes(composition: Composition): fc.Arbitrary<{ readonly scene: Scene; readonly casts: readonly Cast[] }> {
  const blockable = composition === "rewrite" || composition === "waterfall";
  return fc.noBias(
    fc.constantFrom(...HOOKS[composition]).chain((hook) => {
      const rules = ELIGIBILITY[hook];
      const values = fc.constantFrom<unknown>(
        ...(rules === undefined ? [] : [...rules.values, ...rules.values, "other", 7]),
        undefined,
      );
      return fc
        .record({
          casts: fc.array(cast(hook, composition), { maxLength: 5, size: "max" }),
          value: values,
          blocks: blockable ? fc.nat({ max: 2 }).map((n) => n === 0) : fc.constant(false),
          cancelAtMs: cancellations,
        })
        .map(({ casts, value, blocks, cancelAtMs }) => {
          const named = casts.map((one, at) => ({ ...one, actor: { ...one.actor, id: `p${at}` } }));
          const context = rules === undefined || value === undefined ? {} : { [rules.field]: value };
          const actors = named.map(({ actor }) => actor);
          return { casts: named, scene: { hook, composition, actors, context, blocks, cancelAtMs } };
        });
    }),
  );
}

/** The order and who is skipped, from what plugins wrote. */
function rolesOf({ hook, context }: Scene, casts: readonly Cast[]): readonly Role[] {
  return casts
    .map((one, place) => ({ ...one, place }))
    .sort((a, b) => priorityOf(b.actor) - priorityOf(a.actor) || a.place - b.place)
    .map(({ actor: { id, options }, conduct }) => ({
      id,
      conduct,
      // The ledger counts whole ms.
      timeoutMs: typeof options["timeoutMs"] === "number" ? Math.ceil(options["timeoutMs"]) : (DEFAULTS[hook] ?? null),
      skipped: !isEligible(hook, options, context),
    }));
}

/** What the caller of a run is told of it: fields of a rewrite where they count, and no more of a payload that is not sent. */
function toldOf(foretold: Foretold): Foretold {
  const { end, fields, payload } = foretold;
  const { content, cancelReason, metadata } = fields;
  const reasons = {
    ...(cancelReason === undefined ? {} : { cancelReason }),
    ...(metadata === undefined ? {} : { metadata }),
  };
  const told = end === "sent" ? (content === undefined ? {} : { content }) : end === "cancelled" ? reasons : {};
  return { ...foretold, fields: told, payload: end === "sent" ? payload : null };
}

describe.each(["claim", "rewrite", "waterfall", "notify"] as const)(
  "runs of a %s, from plugin to ledger",
  (composition) => {
    it("should come to what a plain loop foretells, and leave a record that verifies and replays to it", async () => {
      await fc.assert(
        fc.asyncProperty(scenes(composition), schedules, async ({ scene, casts }, schedule) => {
          const { blocks, cancelAtMs } = scene;
          const roles = rolesOf(scene, casts);
          const { told, hasHooks, diverged, replays } = await act(scene, schedule);
          const isAsked = roles.some(({ skipped }) => !skipped);
          expect(hasHooks).toBe(isAsked);
          expect(told).toEqual(isAsked ? toldOf(foretell({ composition, roles, blocks, cancelAtMs })) : null);
          expect(diverged).toBeNull();
          expect(replays).toBe(true);
        }),
        { numRuns: 1_000 },
      );
    });
  },
);
