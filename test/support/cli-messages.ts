/** A ledger of message hooks, made by real plugins, a minute apart, for commands that read. */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "#src/dispatch/clock.js";
import { createMessageHooks } from "#src/messages/create.js";
import { definePlugin } from "#src/messages/plugin.js";

/** Oldest first. */
export const RUNS = {
  claimed: "01AAAAAAAAAAAAAAAAAAAAAAAA",
  rewritten: "01BBBBBBBBBBBBBBBBBBBBBBBB",
  cancelled: "01CCCCCCCCCCCCCCCCCCCCCCCC",
  shortened: "01DDDDDDDDDDDDDDDDDDDDDDDD",
  notified: "01EEEEEEEEEEEEEEEEEEEEEEEE",
} as const;

const FIRST = Date.UTC(2026, 1, 28, 9, 30);
const MINUTE = 60_000;

const guard = definePlugin({
  id: "guard",
  version: "1.2.3",
  register(api) {
    api.on("message_sending", ({ content }) =>
      content.includes("secret")
        ? { cancel: true, cancelReason: "it names a secret", metadata: { rule: "secrets" } }
        : { content: content.replaceAll("hunter2", "[gone]") },
    );
    api.on("message_sent", () => {
      throw new Error("the log is full");
    });
  },
});

const faq = definePlugin({
  id: "faq",
  register(api) {
    api.on("before_dispatch", ({ content }) => ({ handled: content === "hello", text: "Hello yourself." }));
    api.on("reply_payload_sending", ({ payload }) => ({
      payload: { ...payload, text: payload.text?.slice(0, 3) ?? "" },
    }));
  },
});

/** Writes it to `.hookledger/ledger.db` in `folder`. */
export async function writeMessages(folder: string): Promise<void> {
  const ids = Object.values(RUNS)[Symbol.iterator]();
  let wall = FIRST - MINUTE;
  mkdirSync(join(folder, ".hookledger"), { recursive: true });
  const { runs, close } = await createMessageHooks({
    store: `sqlite:${join(folder, ".hookledger/ledger.db")}`,
    plugins: [guard, faq],
    redact: ["sk-[0-9]+"],
    clock: { ...systemClock, wall: () => wall },
    newId() {
      wall += MINUTE;
      return ids.next().value ?? "";
    },
  });
  const context = { channelId: "chat", sessionKey: "s-1", runId: "run-1" };
  await runs.claim("before_dispatch", { content: "hello" }, context);
  await runs.rewrite({ to: "ada", content: "hunter2 and sk-1234" }, context);
  await runs.rewrite({ to: "ada", content: "a secret" }, { ...context, sessionKey: "s-2" });
  await runs.waterfall({ payload: { text: "one two" }, kind: "final" }, context);
  await runs.notify("message_sent", { to: "ada", content: "one", success: true }, context);
  await close();
}
