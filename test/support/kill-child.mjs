// A process of its own that works on a ledger until it is told to stop, or killed: node kill-child.mjs <task> <url> <argument>…
// Says what it did on stdout, a line at a time, written at once: what was said, had happened.
import { writeSync } from "node:fs";
import { setTimeout as after } from "node:timers/promises";
import { createKernel } from "#src/dispatch/kernel.js";
import { recover } from "#src/replay/recover.js";
import { verifyAll } from "#src/replay/verify-all.js";
import { openStore } from "#src/store/open.js";

const [task, url, ...args] = process.argv.slice(2);
const TASKS = new Map([
  ["dispatch", dispatch],
  ["recover", recoverAll],
  ["start", start],
  ["read", read],
]);

const guard = {
  "pre-tool-call": {
    // Recorded write-ahead: whatever it does to the world, the ledger knew before that it was called.
    async veto({ call }) {
      say(`effect ${call.id.slice("payload ".length)}`);
      await after(1);
      return denies(call.id) ? "deny" : "allow";
    },
  },
  "plan-ready": {
    veto: ({ plan }) => (denies(plan.items[0].id) ? { decision: "deny", reason: "every third" } : "allow"),
  },
};
const watcher = {
  "pre-tool-call": { observe: () => after(2) },
  "session-end": { observe: () => after(5) },
};
const scribe = {
  "pre-model-call": {
    async transform(payload) {
      await after(1);
      return { ...payload, messages: payload.messages.slice(1) };
    },
  },
};

let stopping = false;
process.stdin.on("end", () => {
  stopping = true;
});
/** Resolves with the first line, so that what waits for it begins when the test says so. */
const told = new Promise((resolve) => {
  process.stdin.once("end", resolve).once("data", resolve);
});
if (task === "read") process.stdin.unref();
else told.then(() => process.stdin.unref());

try {
  await TASKS.get(task)(...args);
  say("done");
} catch (error) {
  say(`failed ${error.stack}`);
  process.exitCode = 1;
}

/** Dispatches numbered payloads from `from` on, four at a time, and says of each decision that was handed out what it was. */
async function dispatch(from, count) {
  await told;
  const kernel = await createKernel({ config: config(), store: url, host: { guard, watcher, scribe } });
  let next = Number(from);
  const end = next + Number(count);
  const lane = async () => {
    while (next < end && !stopping) {
      const n = next++;
      const { dispatchId, status, decision, allowed, recorded, payload } = await kernel.dispatch(inputOf(n), {
        session: `s-${from}`,
      });
      const digest = payload?.ref.digest ?? null;
      say(`ack ${JSON.stringify({ n, dispatchId, status, decision, allowed, recorded, payload: digest })}`);
    }
  };
  await Promise.all([lane(), lane(), lane(), lane()]);
  await kernel.close();
}

async function recoverAll() {
  const store = await openStore(url, { mode: "write" });
  say("open");
  await told;
  for await (const recovered of recover(store, { dryRun: false, now: Date.now() }))
    say(`recovered ${JSON.stringify(recovered)}`);
  await store.close();
}

/** Begins as a kernel and says what that closed. */
async function start() {
  await told;
  const kernel = await createKernel({ config: config(), store: url, host: { guard, watcher, scribe } });
  for (const id of await kernel.recovered) say(`recovered ${id}`);
  await kernel.close();
}

/** Verifies the whole ledger again and again. */
async function read() {
  while (!stopping) {
    const store = await openStore(url, { mode: "read" });
    let checked = 0;
    for await (const part of verifyAll(store, undefined, 1)) {
      checked += part.checked;
      for (const divergence of part.diverged) say(`diverged ${JSON.stringify(divergence)}`);
    }
    await store.close();
    say(`read ${checked}`);
    await after(1);
  }
}

/** Every third is denied at the gates; what is handed to the model is rewritten. */
function inputOf(n) {
  const text = `payload ${n}`;
  switch (n % 4) {
    case 0:
      return { preToolCall: { call: { id: text, toolName: "write" } } };
    case 1:
      return {
        planReady: {
          plan: { items: [{ id: text, provider: "fs", operationName: "write", kind: "TOOL_KIND_RESOURCE" }] },
        },
      };
    case 2:
      return {
        preModelCall: { messages: [{ role: "ROLE_USER", content: [{ text: { text: text.padEnd(5000, ".") } }] }] },
      };
    default:
      return { sessionEnd: { sessionId: text } };
  }
}

function denies(id) {
  return Number(id.slice("payload ".length)) % 3 === 0;
}

function config() {
  const place = { file: "agent.hcl", line: 1, col: 1 };
  const provider = (name) => [name, { name, sourceText: "host", source: { kind: "host" }, sensitive: [], place }];
  const hook = (point, provider, mode, more = {}) => ({ point, provider, mode, shadow: false, place, ...more });
  return {
    files: ["agent.hcl"],
    providers: new Map(["guard", "watcher", "scribe"].map(provider)),
    hooks: [
      hook("pre-tool-call", "watcher", "observe"),
      hook("pre-tool-call", "guard", "veto", { recording: "write-ahead" }),
      hook("plan-ready", "guard", "veto"),
      hook("pre-model-call", "scribe", "transform"),
      hook("session-end", "watcher", "observe"),
    ],
    policy: [{ name: "writes", match: { tool_name: "write" }, action: "allow", place }],
    profiles: new Map(),
    settings: {
      defaultHookTimeoutMs: 5000,
      observeConcurrency: "detached",
      recording: "barrier",
      onStoreFailure: "abort",
      strict: false,
      redact: [],
      maxMessageBytes: 64 * 1024 * 1024,
      kept: {},
    },
    canonical: "{}",
  };
}

function say(line) {
  writeSync(1, `${line}\n`);
}
