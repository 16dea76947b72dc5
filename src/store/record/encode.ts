/** Events as the ledger keeps them: RFC 8785 text, built once, so that what is digested is what is stored. */
import type { DispatchEvent, Outcome, Started, Subscriber } from "../../core/events.js";
import { canonicalJson } from "../../payload/canonical-json.js";

/** The `data` text of an event: all of it but its type. */
export function encodeData(event: DispatchEvent): string {
  switch (event.type) {
    case "started":
      return encodeStarted(event);
    case "subscriber-invoked":
      return `{"index":${event.index},"saw":"${event.saw}"}`;
    case "outcome":
      return encodeOutcome(event);
    case "timeout":
      return `{"budgetMs":${event.budgetMs},"index":${event.index}}`;
    case "decided":
      return `{"decidedBy":${JSON.stringify(event.decidedBy)},"decision":"${event.decision}","payload":"${event.payload}"}`;
    case "aborted": {
      const { type: _, ...data } = event;
      return canonicalJson(data);
    }
  }
}

function encodeOutcome(event: Outcome): string {
  const bare = event.class === "ack" || event.class === "allow";
  if (bare && event.warnings === undefined) return `{"class":"${event.class}","index":${event.index}}`;
  const { type: _, ...data } = event;
  return canonicalJson(data);
}

/** A frozen chain is the same in every dispatch of its point: its text is made once. */
const chainTexts = new WeakMap<readonly Subscriber[], string>();

function encodeStarted(started: Started): string {
  const { budgetMs, configDigest, descriptorDigest, flags, input, observe, subscribers, vetoBearing } = started;
  let chain = chainTexts.get(subscribers);
  if (chain === undefined) {
    chain = canonicalJson(subscribers);
    chainTexts.set(subscribers, chain);
  }
  const { digest, encoding, size } = input;
  return (
    `{"budgetMs":${budgetMs},"composition":${canonicalJson(started.composition)},"configDigest":"${configDigest}",` +
    `"descriptorDigest":"${descriptorDigest}","dispatchId":${canonicalJson(started.dispatchId)},"flags":${canonicalJson(flags)},` +
    `"input":{"digest":"${digest}","encoding":"${encoding}","size":${size}},"observe":"${observe}",` +
    `"point":${canonicalJson(started.point)},"reducerVersion":${started.reducerVersion},"subscribers":${chain},"vetoBearing":${vetoBearing}}`
  );
}
