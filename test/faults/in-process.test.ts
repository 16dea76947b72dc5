import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createKernel, type Kernel } from "#src/dispatch/kernel.js";
import { openMemoryStore } from "#src/store/memory.js";
import { type Containment, contain } from "#src/subscribers/containment.js";
import type { HookHandlers } from "#src/subscribers/handlers.js";
import { agentHcl, dispatched, expectJudged, MODES, type Row } from "./judged.js";

/** A handler for each fault. Plain text, so that it runs as a module and as host functions; its turn names the fault. */
const SUBSCRIBER = `
const proxy = (trap) => new Proxy({ decision: "allow", messages: [] }, trap);
const faults = {
  "throw": () => { throw new Error("boom"); },
  "throw-nothing": () => { throw undefined; },
  "throw-unreadable": () => { throw proxy({ get() { throw 1; }, has() { throw 2; } }); },
  "reject": async () => { throw new TypeError("boom"); },
  "reject-nothing": () => Promise.reject(),
  "hang": () => new Promise(() => {}),
  "hang-unless-aborted": (_p, ctx) => new Promise((_, reject) => ctx.signal.addEventListener("abort", () => reject(new Error("stopped")))),
  "late": (payload, ctx) => new Promise((resolve) => setTimeout(() => resolve(well(payload, ctx)), ctx.remainingMs() + 5)),
  "block": (payload, ctx) => { while (ctx.remainingMs() > 0); return well(payload, ctx); },
  "garbage": () => 42,
  "text": () => "yes",
  "nothing": () => undefined,
  "null": () => null,
  "empty": () => ({}),
  "list": () => [],
  "function": () => () => "allow",
  "of-a-class": () => new (class { decision = "allow" })(),
  "wrong-mode": (payload, ctx) => ctx.mode === "veto" ? payload : { decision: "allow" },
  "wrong-variant": () => ({ sessionId: "s", profile: "p" }),
  "unspecified": () => ({ decision: "HOOK_DECISION_UNSPECIFIED" }),
  "unknown-decision": () => ({ decision: "maybe" }),
  "boolean": () => true,
  "extra-key": (payload, ctx) => ({ ...(ctx.mode === "veto" ? { decision: "allow" } : payload), because: "x" }),
  "proto-key": (payload, ctx) => JSON.parse('{"__proto__": 1, "decision": "allow", "messages": []}'),
  "inherited-decision": () => Object.create({ decision: "allow", messages: [] }),
  "changed-immutable": (payload) => ({ ...payload, model: { provider: "evil", id: "x" } }),
  "wrong-type": (payload) => ({ ...payload, messages: "none" }),
  "endless": (payload) => { const self = { ...payload }; self.messages = [self]; return self; },
  "huge": (payload) => ({ ...payload, messages: [{ role: "ROLE_USER", content: [{ text: { text: "x".repeat(64 * 1024 * 1024) } }], id: "" }] }),
  "getter-throws": (payload, ctx) => ctx.mode === "veto" ? { get decision() { throw new Error("read me not"); } } : { ...payload, get messages() { throw new Error("read me not"); } },
  "trap-throws": () => proxy({ ownKeys() { throw new Error("boom"); } }),
  "then-throws": () => ({ get then() { throw new Error("boom"); } }),
  "then-never": () => ({ then() {} }),
  "settles-twice": (payload, ctx) => ({ then(resolve, reject) { resolve(well(payload, ctx)); resolve("deny"); reject(new Error("boom")); throw new Error("boom"); } }),
  "edits-in-place": (payload, ctx) => { payload.messages = []; return well(payload, ctx); },
  "edits-deeply": (payload, ctx) => { (payload.call ?? payload.model ?? payload).id = "evil"; return well(payload, ctx); },
  "well": (payload, ctx) => well(payload, ctx),
};
const well = (payload, ctx) => ({ observe: undefined, transform: payload, veto: "allow" })[ctx.mode];
const handler = (payload, ctx) => faults[ctx.turn](payload, ctx);
export default {
  "session-start": { observe: handler },
  "pre-model-call": { transform: handler },
  "pre-tool-call": { veto: handler },
};
`;

/** Observers' returned values are ignored: only what throws or never ends is a fault of theirs. */
const ignored = { observe: "answered" } as const;
const QUICK: readonly Row[] = [
  ["well", "answered"],
  ["throw", "failed"],
  ["throw-nothing", "failed"],
  ["throw-unreadable", "failed"],
  ["reject", "failed"],
  ["reject-nothing", "failed"],
  ["garbage", "invalid", ignored],
  ["text", "invalid", ignored],
  ["nothing", "invalid", ignored],
  ["null", "invalid", ignored],
  ["empty", "invalid", ignored],
  ["list", "invalid", ignored],
  ["function", "invalid", ignored],
  ["of-a-class", "invalid", ignored],
  ["wrong-mode", "invalid", ignored],
  ["wrong-variant", "invalid", ignored],
  ["unspecified", "invalid", ignored],
  ["unknown-decision", "invalid", ignored],
  ["boolean", "invalid", ignored],
  ["extra-key", "invalid", ignored],
  ["proto-key", "invalid", ignored],
  ["inherited-decision", "invalid", ignored],
  ["changed-immutable", "invalid", ignored],
  ["wrong-type", "invalid", ignored],
  ["endless", "invalid", ignored],
  ["huge", "invalid", ignored],
  ["getter-throws", "failed", ignored],
  ["trap-throws", "failed", ignored],
  ["then-throws", "failed"],
  ["settles-twice", "answered"],
  ["edits-in-place", "failed"],
  ["edits-deeply", "failed"],
];
const SLOW: readonly Row[] = [
  ["hang", "timed out"],
  ["hang-unless-aborted", "timed out"],
  ["late", "timed out"],
  ["block", "timed out"],
  ["then-never", "timed out"],
];
/** ms */
const PATIENT = 60_000;
const HASTY = 40;

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "hookledger-faults-"));
  await writeFile(join(folder, "sub.mjs"), SUBSCRIBER);
});
afterAll(async () => {
  await rm(folder, { recursive: true });
});

async function kernelOf(source: string, timeoutMs: number, containment?: Containment) {
  const config = join(folder, `${source.replaceAll(/\W/g, "-")}-${timeoutMs}.hcl`);
  await writeFile(config, agentHcl(source, timeoutMs));
  const store = openMemoryStore();
  const { default: sub }: { default: HookHandlers } = await import(join(folder, "sub.mjs"));
  const host = source === "host" ? { sub } : {};
  return { store, kernel: await createKernel({ config, store, host, ...(containment ? { containment } : {}) }) };
}

describe.each(["host", "module:./sub.mjs"])("a subscriber in this process (%s)", (source) => {
  describe.each([
    { rows: QUICK, timeoutMs: PATIENT },
    { rows: SLOW, timeoutMs: HASTY },
  ])("within $timeoutMs ms", ({ rows, timeoutMs }) => {
    let made: Awaited<ReturnType<typeof kernelOf>>;
    beforeAll(async () => {
      made = await kernelOf(source, timeoutMs);
    });
    afterAll(() => made.kernel.close());

    for (const mode of MODES) {
      it.each(rows.map(([fault, is, except]) => [fault, except?.[mode] ?? is] as const))(
        `should be judged in ${mode}: %s is %s`,
        async (turn, judgement) => {
          const result = await dispatched(made.kernel, mode, { turn });
          await expectJudged(made.store, mode, result, judgement, timeoutMs);
        },
      );
    }
  });
});

describe("a module that reaches for the process", () => {
  const MODULE = `
const faults = {
  "exit": () => process.exit(0),
  "exit-zero-later": () => new Promise(() => setImmediate(() => process.exit(0))),
  "abort": () => process.abort(),
  "kill-itself": () => process.kill(process.pid, "SIGKILL"),
};
const handler = (_payload, ctx) => faults[ctx.turn]();
export default {
  "session-start": { observe: handler },
  "pre-model-call": { transform: handler },
  "pre-tool-call": { veto: handler },
};
`;
  let containment: Containment;
  let kernel: Kernel;
  const store = openMemoryStore();
  beforeAll(async () => {
    await writeFile(join(folder, "exits.mjs"), MODULE);
    const config = join(folder, "exits.hcl");
    await writeFile(config, agentHcl("module:./exits.mjs", PATIENT));
    containment = contain({ onStray: () => {} });
    kernel = await createKernel({ config, store, containment });
  });
  afterAll(async () => {
    await kernel.close();
    containment.dispose();
  });

  for (const mode of MODES) {
    it.each(["exit", "exit-zero-later", "abort", "kill-itself"])(`should have crashed in ${mode}: %s`, async (turn) => {
      const result = await dispatched(kernel, mode, { turn });
      await expectJudged(store, mode, result, "crashed", PATIENT);
      expect(process.exitCode).toBeUndefined();
    });
  }
});
