import type { StreamEvents } from "../store/port.js";
import { metadataOf } from "../store/record/metadata.js";

type HeadFinding = {
  readonly kind: "truncated" | "chain";
  readonly expected: string;
  readonly found: string;
};

/**
 * The stream's head is kept in a row of its own: a log that does not reach it has lost its tail. What else the row says of
 * the stream, by which it is looked up and put in order, is what its first event says. `chain`: of the last event.
 */
export function headFinding({ head, events }: StreamEvents, chain: string): HeadFinding | null {
  if (head === null) return { kind: "truncated", expected: "a head of this stream", found: "none" };
  if (head.revision !== events.length - 1 || head.chain !== chain) {
    return {
      kind: "truncated",
      expected: `head at revision ${head.revision}, chain ${head.chain.slice(0, 16)}…`,
      found: `${events.length} events, chain ${chain.slice(0, 16)}…`,
    };
  }
  const session = metadataOf(events[0])?.session ?? null;
  if (head.session !== session) {
    return {
      kind: "chain",
      expected: `a head of ${sessionText(session)}`,
      found: `a head of ${sessionText(head.session)}`,
    };
  }
  const position = events[0]?.position ?? 0;
  if (head.position === position) return null;
  return {
    kind: "chain",
    expected: `a head at position ${position}`,
    found: `a head at position ${head.position}`,
  };
}

function sessionText(session: string | null): string {
  return session === null ? "no session" : `session ${JSON.stringify(session.slice(0, 256))}`;
}
