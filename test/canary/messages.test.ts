/** Secrets in every place where a channel or a plugin of message hooks can put them: none reaches the ledger or a log line. */
import { join } from "node:path";
import { expect, it } from "vitest";
import { createMessageHooks } from "#src/messages/create.js";
import type { MessagePlugin } from "#src/messages/plugin.js";
import { verifyAll } from "#src/replay/verify-all.js";
import { openStore } from "#src/store/open.js";
import { folderWith } from "../support/cli.js";
import { filesBelow, leaks } from "./needles.js";

const TOKEN = "canary-7f3a9c51e2d84b06";
const NOTE = 'canary "q" ü/+?\u{1F426}\n\u0007\u200b\u2028 tail';
const LONG = `canary.${"eyJhbGciOiJIUzI1NiJ9".repeat(5)}`;
/** Found by a pattern of the operator. */
const KEY = "sk-canary-0123456789";
const SECRETS = [TOKEN, NOTE, LONG, KEY];

const all = SECRETS.join(" and ");
const nested = { [TOKEN]: NOTE, [KEY]: [TOKEN, { [NOTE]: KEY }], plain: all, bytes: Buffer.from(all) };

/** How a handler may give away what it knows. */
const ANSWERS: readonly (() => unknown)[] = [
  () => ({ handled: false, text: all }),
  () => ({ content: all, metadata: nested, cancelReason: NOTE }),
  () => ({ content: 7, [LONG]: 1, metadata: all }),
  () => ({ payload: { text: `${"long ".repeat(1000)}${TOKEN}`, presentation: nested, mediaUrls: [KEY, NOTE] } }),
  () => ({ payload: { [TOKEN]: all, send: () => all } }),
  () => {
    throw new Error(`no access with ${all}`);
  },
  () => Promise.reject(all),
  () => {
    throw Object.assign(new TypeError(all), { name: TOKEN, cause: new Error(KEY) });
  },
  // What comes out of the bound of a message is the beginning of a secret.
  () => Promise.reject(new Error(`${"x".repeat(2040)}${TOKEN}`)),
  () => ({
    get content() {
      throw new Error(all);
    },
    get handled() {
      throw new Error(all);
    },
    get payload() {
      throw new Error(all);
    },
  }),
  () => ({ cancel: true, reason: all, cancelReason: all, metadata: nested, payload: { text: all }, content: all }),
  () => ({ handled: true, text: all, nested }),
];

const HOOKS = [
  "before_dispatch",
  "message_received",
  "message_sending",
  "reply_payload_sending",
  "message_sent",
] as const;

function leaky(place: number): MessagePlugin {
  return {
    id: `leaky${place}`,
    register(api) {
      for (const hook of HOOKS) api.on(hook, (() => ANSWERS[place]?.()) as never);
    },
  };
}

it("should keep every secret out of the ledger and the log of message hooks", async () => {
  const folder = folderWith({});
  const lines: string[] = [];
  const store = `sqlite:${join(folder, "ledger.db")}`;
  const { runs, close } = await createMessageHooks({
    store,
    plugins: ANSWERS.map((_, place) => leaky(place)),
    redact: ["sk-canary-[0-9]+"],
    secrets: [TOKEN, NOTE, LONG],
    log: (line) => lines.push(JSON.stringify(line)),
  });
  const context = { channelId: TOKEN, sessionKey: NOTE, runId: KEY, senderId: LONG, [TOKEN]: nested };
  const metadata = { nested, mediaUrls: [all] };
  await runs.claim("before_dispatch", { content: all, body: NOTE, ...{ metadata } }, context);
  await runs.notify("message_received", { from: TOKEN, content: `${"long ".repeat(1000)}${KEY}`, metadata }, context);
  await runs.rewrite({ to: TOKEN, content: all, metadata }, { channelId: KEY, sessionKey: all });
  await runs.waterfall({ payload: { text: all, presentation: nested }, kind: "final" }, context);
  await runs.notify("message_sent", { to: KEY, content: all, success: false, error: all }, context);
  await close();
  expect(leaks(SECRETS, { ...filesBelow(folder), log: lines.join("\n") })).toEqual([]);
  expect(lines.length).toBeGreaterThan(10);
  const reader = await openStore(store, { mode: "read" });
  for await (const part of verifyAll(reader, undefined, 1)) expect(part).toMatchObject({ diverged: [] });
  await reader.close();
});
