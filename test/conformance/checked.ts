/** Runs checks in this process, and tells what failed. */
import {
  CHECKS,
  type Checked,
  conform,
  openSubject,
  type Stand,
  type Subject,
  servedOf,
} from "#src/conformance/api.js";
import { handlersIn, handlerTable } from "#src/subscribers/handler-table.js";
import { inProcess } from "#src/subscribers/in-process.js";
import { loggerFor } from "#src/subscribers/log.js";
import { provider } from "../support/subscriber-calls.js";

type Options = {
  readonly runs?: number;
  readonly timeoutMs?: number;
  readonly graceMs?: number;
  readonly budgetMs?: number;
  readonly checks?: readonly string[];
  readonly stands?: readonly Stand[];
};

export const SEED = 7;

/** Handlers as a module exports them, without the module. */
export function subjectOf(hooks: object): Subject {
  const module = provider({ kind: "module", path: "/nowhere.mjs" });
  const stands = handlersIn(module, hooks);
  const handlers = handlerTable(module, stands, hooks);
  const transport = inProcess({ provider: "sub", handlers, config: {}, log: loggerFor("sub", () => {}) });
  return { stands, isExplicit: true, reach: async () => transport, exchange: null, close: async () => {} };
}

/** The peer behind a `grpc+unix://` source. */
export function peerSubject(source: string): Promise<Subject> {
  const target = source.slice("grpc+unix://".length);
  const address = provider({ kind: "grpc", transport: "unix", target, insecure: false });
  return openSubject(address, { env: {}, log: () => {}, maxMessageBytes: 64 * 1024 * 1024 });
}

export async function checked(subject: Subject, options: Options = {}): Promise<readonly Checked[]> {
  const { runs = 30, timeoutMs = 2_000, graceMs = 200, budgetMs = 60_000 } = options;
  const shared = { subject, seed: SEED, timeoutMs, graceMs, runs, budgetMs, onRun: () => {} };
  const checks = CHECKS.filter(({ name }) => options.checks?.includes(name) ?? true);
  try {
    const stands = options.stands ?? (await servedOf(subject.stands, shared));
    const results: Checked[] = [];
    for await (const result of conform({ ...shared, stands, checks })) results.push(result);
    return results;
  } finally {
    await subject.close();
  }
}

/** Names of the checks that failed, each once. */
export function failuresIn(results: readonly Checked[]): readonly string[] {
  return [...new Set(results.filter(({ finding }) => !finding.ok).map(({ check }) => check.name))];
}

export function failureOf(results: readonly Checked[], name: string) {
  const finding = results.find(({ check, finding }) => check.name === name && !finding.ok)?.finding;
  if (finding === undefined || finding.ok) throw new Error(`${name} did not fail`);
  return finding;
}
