import { randomInt } from "node:crypto";
import type * as Conformance from "../conformance/api.js";
import { HOOK_POINTS, type HookPoint, isHookPoint } from "../core/points.js";
import { HookledgerError } from "../errors.js";
import type { LogSink } from "../subscribers/log.js";
import type { CommandCall, CommandFile } from "./command.js";
import { type Chosen, chosenProvider, placed } from "./conformance-provider.js";
import { printReport, type Row } from "./conformance-report.js";
import { reproduceCommand } from "./conformance-reproduce.js";
import { EXIT, type ExitCode } from "./exit.js";
import { logTo } from "./modules.js";
import { readBytes, readPayload } from "./payload-input.js";

type Api = typeof Conformance;

const MODES = ["observe", "transform", "veto"] as const;
const DEFAULT_RUNS = 100;
const DEFAULT_TIMEOUT_MS = 2_000;
const DEFAULT_BUDGET_MS = 300_000;
const DEFAULT_OUT = ".hookledger/conformance";

export const conformance: CommandFile = {
  name: "conformance",
  summary:
    "checks a subscriber with generated payloads, and makes what fails small and repeatable; exit 5 if a check fails",
  args: "[source]",
  options: [
    {
      flags: "--provider <name>",
      description: "a provider of the configuration instead of a source, as it is configured",
    },
    { flags: "--provider-config <file>", description: "JSON of a provider block's body, for a source" },
    { flags: "--point <point>", description: "only at this hook point" },
    { flags: "--mode <mode>", description: "only in this mode: observe, transform or veto" },
    { flags: "--check <names>", description: "only these checks, with commas between them" },
    { flags: "--skip <names>", description: "all checks but these" },
    { flags: "--payload <file>", description: "one check once more, on a payload on which it failed" },
    { flags: "--runs <n>", description: `payloads for each check (default ${DEFAULT_RUNS})` },
    { flags: "--seed <n>", description: "what is generated depends on it alone (default: chosen at random, and told)" },
    { flags: "--timeout <duration>", description: "what a call has (default 2s)" },
    { flags: "--max-time <duration>", description: "for everything together (default 5m)" },
    {
      flags: "--out <dir>",
      description: `where failing payloads are written, never over a file (default ${DEFAULT_OUT})`,
    },
  ],
  examples: [
    { command: "hookledger conformance module:./hooks/guard.mjs", does: "a module, in every handler that it has" },
    { command: "hookledger conformance ./my-plugin --point plan-ready --mode veto", does: "a plugin, at one point" },
    { command: "hookledger conformance --provider gate --skip determinism", does: "as agent.hcl configures it" },
  ],
  async run(call) {
    const api = await import("../conformance/api.js");
    const asked = askedOf(call, api);
    const chosen = await chosenProvider(call);
    const interrupted = new Promise<ExitCode>((resolve) => call.host.onInterrupt(resolve));
    const session = new Session(call, api, asked, chosen);
    try {
      return await Promise.race([session.run(), interrupted]);
    } catch (error) {
      throw placed(error);
    } finally {
      await session.close();
    }
  },
};

type Asked = {
  readonly point: HookPoint | undefined;
  readonly mode: (typeof MODES)[number] | undefined;
  readonly checks: readonly Conformance.Check[];
  readonly payload: string | undefined;
  readonly runs: number;
  readonly seed: number;
  /** ms */
  readonly timeoutMs: number;
  /** ms */
  readonly budgetMs: number;
  readonly out: string;
};

/** What can be judged before anything is loaded. Throws HL_USAGE. */
function askedOf(call: CommandCall, { CHECKS }: Api): Asked {
  const asked: Asked = {
    point: call.oneOf("point", Object.keys(HOOK_POINTS).filter(isHookPoint)),
    mode: call.oneOf("mode", MODES),
    checks: checksOf(call, CHECKS),
    payload: call.text("payload"),
    runs: call.whole("runs", { min: 1, max: 1_000_000 }) ?? DEFAULT_RUNS,
    seed: call.whole("seed", { min: 0, max: 2 ** 31 - 1 }) ?? randomInt(2 ** 31 - 1),
    timeoutMs: durationOf(call, "timeout", 600_000) ?? DEFAULT_TIMEOUT_MS,
    budgetMs: durationOf(call, "maxTime", 86_400_000) ?? DEFAULT_BUDGET_MS,
    out: call.text("out") ?? DEFAULT_OUT,
  };
  const { point, mode, payload, checks, out } = asked;
  if (out === "" || payload === "") throw new HookledgerError("HL_USAGE", "--out and --payload take a path");
  if (point !== undefined && mode === "veto" && !HOOK_POINTS[point].vetoBearing) {
    throw new HookledgerError("HL_USAGE", `no veto can stand at ${point}`);
  }
  if (payload !== undefined && (checks.length !== 1 || mode === undefined || point === undefined)) {
    throw new HookledgerError("HL_USAGE", "--payload needs one --check, --point and --mode", {
      hint: "A run that fails prints the whole command.",
    });
  }
  return asked;
}

function checksOf(call: CommandCall, all: Api["CHECKS"]): readonly Conformance.Check[] {
  const named = (option: string): readonly string[] | undefined => {
    const names = call
      .text(option)
      ?.split(",")
      .map((name) => name.trim());
    const unknown = names?.find((name) => !all.some((check) => check.name === name));
    if (unknown === undefined) return names;
    throw new HookledgerError("HL_USAGE", `--${option}: there is no check ${JSON.stringify(unknown)}`, {
      hint: `There are ${all.map(({ name }) => name).join(", ")}.`,
    });
  };
  const [only, skipped] = [named("check"), named("skip")];
  const checks = all.filter(({ name }) => (only?.includes(name) ?? true) && skipped?.includes(name) !== true);
  if (checks.length === 0) throw new HookledgerError("HL_USAGE", "--skip leaves no check to be run");
  return checks;
}

function durationOf(call: CommandCall, name: string, max: number): number | undefined {
  const duration = call.duration(name);
  if (duration === undefined || (duration >= 1 && duration <= max)) return duration;
  throw new HookledgerError("HL_USAGE", `--${name === "maxTime" ? "max-time" : name} takes from 1ms to ${max / 1000}s`);
}

class Session {
  readonly #call: CommandCall;
  readonly #api: Api;
  readonly #asked: Asked;
  readonly #chosen: Chosen;
  #subject: Conformance.Subject | undefined;

  constructor(call: CommandCall, api: Api, asked: Asked, chosen: Chosen) {
    this.#call = call;
    this.#api = api;
    this.#asked = asked;
    this.#chosen = chosen;
  }

  async run(): Promise<ExitCode> {
    const { provider, config } = this.#chosen;
    const { maxMessageBytes } = config.settings;
    const { host, out } = this.#call;
    const redact = (text: string) => out.redacted(text);
    this.#subject = await this.#api.openSubject(provider, { env: host.env, log: this.#log, redact, maxMessageBytes });
    return this.#asked.payload === undefined
      ? this.#explore(this.#subject)
      : this.#reproduce(this.#subject, this.#asked.payload);
  }

  /** Ends what was started; what is still being started ends with this process. */
  async close(): Promise<void> {
    await this.#subject?.close();
  }

  async #explore(subject: Conformance.Subject): Promise<ExitCode> {
    const { checks, out } = this.#asked;
    const options = this.#options(subject);
    const stands = await this.#api.servedOf(this.#wanted(subject), options);
    if (stands.length === 0) throw this.#nothingServed(subject);
    const rows: Row[] = [];
    for await (const { finding, ...placed } of this.#api.conform({ ...options, stands, checks })) {
      const specimen = finding.ok ? undefined : finding.specimen;
      const payloadFile = specimen && (await this.#api.writeEvidence(out, placed, specimen));
      rows.push({
        ...placed,
        finding,
        payloadFile,
        reproduce: payloadFile && reproduceCommand(this.#call, { ...placed, payloadFile, seed: options.seed }),
      });
    }
    return this.#report(rows);
  }

  async #reproduce(subject: Conformance.Subject, path: string): Promise<ExitCode> {
    const { checks, point, mode } = this.#asked;
    const [check] = checks;
    if (check === undefined || point === undefined || mode === undefined) throw new TypeError("not judged before");
    if (this.#wanted(subject).length === 0) throw this.#nothingServed(subject);
    const specimen = await specimenOf(check, point, path, this.#call);
    const { finding, ...placed } = await this.#api.reproduce({ check, point, mode }, specimen, this.#options(subject));
    return this.#report([{ ...placed, finding, payloadFile: finding.ok ? undefined : path, reproduce: undefined }]);
  }

  async #report(rows: readonly Row[]): Promise<ExitCode> {
    const { seed, runs } = this.#asked;
    const ok = rows.every(({ finding }) => finding.ok);
    await printReport({ source: this.#chosen.text, ok, seed, runs, rows }, this.#call.out);
    return ok ? EXIT.done : EXIT.divergence;
  }

  #options(subject: Conformance.Subject): Omit<Conformance.ConformOptions, "stands" | "checks"> {
    const { out } = this.#call;
    const { seed, runs, timeoutMs, budgetMs } = this.#asked;
    let run = 0;
    const onRun = ({ point, mode, check }: Conformance.Placed) => {
      run++;
      out.progress(`${point} ${mode}: ${check.name}, ${run} ${run === 1 ? "run" : "runs"} so far`);
    };
    return { subject, seed, runs, timeoutMs, budgetMs, onRun };
  }

  #wanted({ stands }: Conformance.Subject): readonly Conformance.Stand[] {
    const { point, mode } = this.#asked;
    return stands.filter((stand) => stand.point === (point ?? stand.point) && stand.mode === (mode ?? stand.mode));
  }

  #nothingServed({ stands }: Conformance.Subject): HookledgerError {
    const { point, mode } = this.#asked;
    const where = [point ?? "any hook point", ...(mode === undefined ? [] : [`in mode ${mode}`])].join(" ");
    const said = stands.map((stand) => `${stand.point}.${stand.mode}`).join(", ");
    return new HookledgerError("HL_NOT_FOUND", `${this.#chosen.text} does not serve ${where}`, {
      hint: said === "" ? "It has no handler." : `It may serve ${said}.`,
    });
  }

  /** What it says is of interest only to who looks for it: it is called thousands of times. */
  readonly #log: LogSink = (line) => {
    if (this.#call.out.verbose) logTo(this.#call.out)(line);
  };
}

async function specimenOf(
  check: Conformance.Check,
  point: HookPoint,
  path: string,
  { host }: CommandCall,
): Promise<Conformance.Specimen> {
  const { stdin } = host;
  if (check.takes === "request") return { kind: "request", bytes: await readBytes(path, stdin) };
  const payload = await readPayload({ path, binary: path.endsWith(".bin"), stdin });
  if (payload.point === point) return { kind: "payload", payload };
  throw new HookledgerError("HL_USAGE", `--payload is of ${payload.point}, and --point says ${point}`);
}
