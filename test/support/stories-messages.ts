/** Runs of message hooks, one of each composition and way to end, for the views that people read. */
import type { DispatchEvent, Outcome, RewriteSet, Started } from "#src/core/events.js";
import type { Json } from "#src/payload/canonical-json.js";
import type { EventStore, StreamName } from "#src/store/port.js";
import { aborted, ack, cancelled, claimed, decided, declined, failed, handlers, timeout } from "./given.js";
import { at, type Happening, type Kept, keptJson, record, ulidOf } from "./ledger.js";
import { CONFIG } from "./stories.js";

export const CONTEXT = { channelId: "chat", sessionKey: "s-1" };

export function documentOf(event: { readonly [key: string]: Json }): Kept {
  return keptJson({ context: CONTEXT, event });
}

export const SENDING = documentOf({ content: "my key is hunter2", to: "ada" });
export const INBOUND = documentOf({ content: "hello", isGroup: false });
export const REPLY = documentOf({ kind: "final", payload: { text: "one two three" } });

/** A run on one input, of a hook and by its composition. */
export function run(n: number, hook: string, composition: string, links: readonly string[], input: Kept) {
  const kept = [input];
  const happenings: Happening[] = [];
  const told = {
    keep(value: Json | Kept): Kept {
      const one = isKept(value) ? value : keptJson(value);
      kept.push(one);
      return one;
    },
    start(more: Partial<Started> = {}) {
      const event = handlers(composition, links, {
        dispatchId: ulidOf(n),
        point: hook,
        input: input.ref,
        configDigest: CONFIG.digest,
        descriptorDigest: CONFIG.digest,
        observe: "sequential",
        ...more,
      });
      return told.happen(0, event);
    },
    call: (atMs: number, index: number, saw = input) =>
      told.happen(atMs, { type: "subscriber-invoked", index, saw: saw.ref.digest }),
    happen(atMs: number, event: DispatchEvent, lagMs?: number) {
      happenings.push(at(atMs, event, lagMs));
      return told;
    },
    decide: (atMs: number, decision: "allow" | "deny", by = "kernel:default", payload = input) =>
      told.happen(atMs, { ...decided(decision, by), payload: payload.ref.digest }),
    record: (store: EventStore): Promise<StreamName> =>
      record(store, { n, session: "s-1", turn: "run-1", kept, blobs: [CONFIG], happenings }),
  };
  return told;
}

function isKept(value: Json | Kept): value is Kept {
  return typeof value === "object" && value !== null && "bytes" in value;
}

export function defines(index: number, set: { readonly [field in keyof RewriteSet]: Kept }): Outcome {
  return { type: "outcome", index, class: "rewritten", set: refs(set) };
}

export function cancels(index: number, set: { readonly [field in keyof RewriteSet]: Kept }): Outcome {
  return { type: "outcome", index, class: "cancelled", set: refs(set) };
}

function refs(set: { readonly [field in keyof RewriteSet]: Kept }): RewriteSet {
  return Object.fromEntries(Object.entries(set).map(([field, { ref }]) => [field, ref]));
}

export function replaces(index: number, by: Kept): Outcome {
  return { type: "outcome", index, class: "rewritten", payload: by.ref };
}

/** before_dispatch: one declines, one throws, one is not meant for it, one claims, and the last is never called. */
export function claimedMessage(store: EventStore, n = 1): Promise<StreamName> {
  const told = run(n, "before_dispatch", "claim", ["shy", "broken", "other~skip", "faq@none", "late"], INBOUND);
  const result = told.keep({ handled: true, text: "Hello yourself." });
  return told
    .start()
    .call(1, 0)
    .happen(2, declined(0))
    .call(2, 1)
    .happen(3, failed(1, "UNKNOWN", "no such table"))
    .call(3, 3)
    .happen(5, { ...claimed(3, ""), payload: result.ref } as Outcome)
    .decide(5, "allow", "faq", result)
    .record(store);
}

export function unclaimedMessage(store: EventStore, n = 2): Promise<StreamName> {
  return run(n, "before_agent_reply", "claim", ["shy"], INBOUND)
    .start()
    .call(1, 0)
    .happen(2, declined(0))
    .decide(3, "allow")
    .record(store);
}

/** message_sending: two rewrite the content, one marks it, one does not answer in time. */
export function rewrittenMessage(store: EventStore, n = 3): Promise<StreamName> {
  const told = run(n, "message_sending", "rewrite", ["scrub", "mark", "slow@15", "polite"], SENDING);
  const scrubbed = told.keep("my key is [gone]");
  const polite = told.keep("My key is hunter2, please.");
  const metadata = told.keep({ score: 3, tags: ["a"] });
  return told
    .start()
    .call(1, 0)
    .happen(2, defines(0, { content: scrubbed }))
    .call(2, 1)
    .happen(3, defines(1, { metadata }))
    .call(3, 2)
    .happen(19, timeout(2, 15), 1)
    .call(19, 3)
    .happen(20, defines(3, { content: polite }))
    .decide(20, "allow", "kernel:default", polite)
    .record(store);
}

/** message_sending: the second cancels, with a reason and more; what it wrote is never sent. */
export function cancelledMessage(store: EventStore, n = 4): Promise<StreamName> {
  const told = run(n, "message_sending", "rewrite", ["scrub", "guard", "polite"], SENDING);
  const scrubbed = told.keep("my key is [gone]");
  const cancelReason = told.keep("it names a key");
  const metadata = told.keep({ rule: "keys" });
  const content = told.keep("nothing at all");
  return told
    .start()
    .call(1, 0)
    .happen(2, defines(0, { content: scrubbed }))
    .call(2, 1)
    .happen(3, cancels(1, { content, cancelReason, metadata }))
    .decide(3, "deny", "guard", scrubbed)
    .record(store);
}

/** message_sending, where failures block: one hangs. */
export function blockedMessage(store: EventStore, n = 5): Promise<StreamName> {
  return run(n, "message_sending", "rewrite", ["guard@15", "polite"], SENDING)
    .start({ flags: ["blocks_on_failure"] })
    .call(1, 0)
    .happen(16, timeout(0, 15))
    .decide(16, "deny", "guard")
    .record(store);
}

/** reply_payload_sending: one shortens, one throws, one changes it again. */
export function shortenedReply(store: EventStore, n = 6): Promise<StreamName> {
  const told = run(n, "reply_payload_sending", "waterfall", ["short", "broken", "voice"], REPLY);
  const short = told.keep(documentOf({ kind: "final", payload: { text: "one" } }));
  const voice = told.keep(documentOf({ kind: "final", payload: { audioAsVoice: true, text: "one" } }));
  return told
    .start()
    .call(1, 0)
    .happen(2, replaces(0, short))
    .call(2, 1, short)
    .happen(3, failed(1, "UNKNOWN", "out of tape"))
    .call(3, 2, short)
    .happen(4, replaces(2, voice))
    .decide(4, "allow", "kernel:default", voice)
    .record(store);
}

/** reply_payload_sending: one shortens, the next cancels. */
export function cancelledReply(store: EventStore, n = 7): Promise<StreamName> {
  const told = run(n, "reply_payload_sending", "waterfall", ["short", "quiet", "voice"], REPLY);
  const short = told.keep(documentOf({ kind: "final", payload: { text: "one" } }));
  return told
    .start()
    .call(1, 0)
    .happen(2, replaces(0, short))
    .call(2, 1, short)
    .happen(3, { ...cancelled(1), reason: "it is late" } as Outcome)
    .decide(3, "deny", "quiet", short)
    .record(store);
}

/** message_sent: three are told at once, one of them fails, one is slow. */
export function sentMessage(store: EventStore, n = 8): Promise<StreamName> {
  const input = documentOf({ content: "one", success: true, to: "ada" });
  return run(n, "message_sent", "notify", ["log", "count", "slow@none"], input)
    .start()
    .call(1, 0)
    .call(1, 1)
    .call(1, 2)
    .happen(2, failed(1, "UNKNOWN", "no such series"))
    .happen(3, ack(0))
    .happen(60, ack(2))
    .decide(60, "allow")
    .record(store);
}

/** before_dispatch: its caller gave up. */
export function abandonedMessage(store: EventStore, n = 9): Promise<StreamName> {
  return run(n, "before_dispatch", "claim", ["faq@none", "late"], INBOUND)
    .start()
    .call(1, 0)
    .happen(4, aborted("cancelled", 0))
    .record(store);
}

/** message_received: the process ended while two were told. */
export function openMessage(store: EventStore, n = 10): Promise<StreamName> {
  return run(n, "message_received", "notify", ["log", "slow@none"], INBOUND)
    .start()
    .call(1, 0)
    .call(1, 1)
    .record(store);
}
