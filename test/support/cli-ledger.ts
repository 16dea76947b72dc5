/** A ledger of five dispatches, made by a real kernel, an hour apart, for commands that read. */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import { parseConfig } from "#src/config/load.js";
import { systemClock } from "#src/dispatch/clock.js";
import { createKernel } from "#src/dispatch/kernel.js";

/** The day of the first one. */
export const FIRST = Date.UTC(2026, 1, 28, 9, 30);
const HOUR = 3_600_000;

/** Oldest first. `two` and `three` begin alike. */
export const IDS = {
  allowed: "01AAAAAAAAAAAAAAAAAAAAAAAA",
  denied: "01BBBBBBBBBBBBBBBBBBBBBBBB",
  aborted: "01BBCCCCCCCCCCCCCCCCCCCCCC",
  rewritten: "01DDDDDDDDDDDDDDDDDDDDDDDD",
  plain: "01EEEEEEEEEEEEEEEEEEEEEEEE",
} as const;

const CONFIG = `
required_providers {
  gate     = { source = "host" }
  scrubber = { source = "host" }
}
hook "pre-tool-call" {
  provider = "gate"
  mode = "veto"
}
hook "pre-model-call" {
  provider = "scrubber"
  mode = "transform"
}
`;

/** Writes it to `.hookledger/ledger.db` in `folder`. */
export async function writeLedger(folder: string): Promise<void> {
  const loaded = await parseConfig([{ name: "agent.hcl", text: CONFIG }]);
  if (!loaded.ok) throw new Error(loaded.errors[0]?.message);
  let wall = FIRST;
  mkdirSync(join(folder, ".hookledger"), { recursive: true });
  const kernel = await createKernel({
    config: loaded.config,
    store: `sqlite:${join(folder, ".hookledger/ledger.db")}`,
    clock: { ...systemClock, wall: () => wall },
    host: {
      gate: {
        "pre-tool-call": {
          veto: ({ call }) => (call?.toolName === "rm" ? { decision: "deny", reason: "rm is never run" } : "allow"),
        },
      },
      scrubber: { "pre-model-call": { transform: (payload) => ({ ...payload, messages: [] }) } },
    },
  });
  const call = (toolName: string) => ({ preToolCall: { call: { toolName } } });
  const message = { role: "ROLE_USER", content: [{ text: { text: "hello" } }] } as const;
  await kernel.dispatch(call("ls"), { id: IDS.allowed, session: "s-1", turn: "t-1" });
  wall += HOUR;
  await kernel.dispatch(call("rm"), { id: IDS.denied, session: "s-1" });
  wall += HOUR;
  await kernel.dispatch(call("ls"), { id: IDS.aborted, session: "evil\u202e", signal: AbortSignal.abort() });
  wall += HOUR;
  await kernel.dispatch({ preModelCall: { messages: [message] } }, { id: IDS.rewritten });
  wall += HOUR;
  await kernel.dispatch({ sessionEnd: { sessionId: "s-2" } }, { id: IDS.plain });
  await kernel.close();
}

/** Alters the ledger behind hookledger's back. */
export function tamper(folder: string, sql: string, ...parameters: readonly unknown[]): void {
  const db = new Database(join(folder, ".hookledger/ledger.db"));
  try {
    if (db.prepare(sql).run(...parameters).changes === 0) throw new Error(`changed nothing: ${sql}`);
  } finally {
    db.close();
  }
}
