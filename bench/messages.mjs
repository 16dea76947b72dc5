// message_sending with five handlers, recorded in memory, beside hookable's serial call of the same handlers.
import { createHooks } from "hookable";
import { createMessageHooks } from "hookledger/messages";
import { clone } from "#src/messages/clone.js";
import { recorded } from "#src/messages/recorded.js";
import { canonicalJson } from "#src/payload/canonical-json.js";
import { digest } from "#src/payload/digest.js";
import { heading, perCall, perSyncCall, row } from "./measure.mjs";

const EVENT = {
  to: "+4930123456",
  content: "Your order 4711 has left the warehouse and will be with you on Thursday.",
  replyToId: "m-1",
  metadata: { channel: "sms", accountId: "a-1", mediaUrls: ["https://example.org/label.png"] },
};
const CONTEXT = { channelId: "sms", sessionKey: "s-1", runId: "r-1", messageId: "m-1" };
/** One in five rewrites. */
const HANDLERS = Array.from(
  { length: 5 },
  (_, i) => (event) => (i === 2 ? { content: `${event.content} ` } : undefined),
);

export async function messages() {
  heading(
    "message_sending with 5 handlers, 1 of which rewrites, recorded in memory",
    "one run until its decision is in the ledger: 12 events, an own copy of the event for each handler",
    "a disk, handlers that wait, large events",
  );
  const hooks = await createMessageHooks({
    store: "memory:",
    plugins: HANDLERS.map((handler, i) => ({
      id: `p${i}`,
      register: (api) => void api.on("message_sending", handler),
    })),
  });
  const peer = createHooks();
  for (const handler of HANDLERS) peer.hook("message_sending", handler);
  const bare = await perCall(() => peer.callHook("message_sending", EVENT), { calls: 20_000 });
  const ours = await perCall(() => hooks.runs.rewrite(EVENT, CONTEXT), { calls: 2_000 });
  await hooks.close();
  const document = { context: CONTEXT, event: EVENT };
  const copies = 5 * perSyncCall(() => clone(EVENT), { calls: 20_000 });
  const printing = perSyncCall(() => Buffer.from(canonicalJson(recorded(document))), { calls: 20_000 });
  const bytes = Buffer.from(canonicalJson(recorded(document)));
  const hashing = perSyncCall(() => digest("payload", bytes), { calls: 20_000 });
  row("hookable, serial", `${bare.toFixed(1)} µs`, "nothing recorded, one event shared by all, no deadline");
  row("hookledger", `${ours.toFixed(0)} µs`, `target ≤ 150 µs; ${(ours / bare).toFixed(0)} × hookable`);
  row("  of which: 5 copies of the event", `${copies.toFixed(1)} µs`);
  row("  of which: the event as canonical JSON", `${printing.toFixed(1)} µs`);
  row(
    "  of which: its digest",
    `${hashing.toFixed(1)} µs`,
    "the rest: machine, promises, timers, sealing of 12 events",
  );
}
