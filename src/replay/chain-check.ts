import type { DispatchEvent } from "../core/events.js";
import type { RecordedEvent } from "../store/port.js";
import { encodeData } from "../store/record/encode.js";
import { encodePayloadTexts, type ReadMetadata } from "../store/record/metadata.js";
import { seal } from "../store/seal.js";

/**
 * Does the recorded event come out again, letter for letter, when what was read of it is written and sealed behind
 * `previousChain`? So no other spelling of the same values passes, even under a chain that was made for it.
 */
export function sealsTo(
  { id, revision, data, metadata: text }: RecordedEvent,
  event: DispatchEvent,
  metadata: ReadMetadata,
  previousChain: string,
  printMetadata: (metadata: ReadMetadata) => string,
): boolean {
  const draft = { id, type: event.type, data: encodeData(event), metadata: printMetadata(metadata) };
  const { payloads } = metadata;
  const sealed = seal(
    previousChain,
    revision,
    payloads.size === 0 ? draft : { ...draft, payloads: encodePayloadTexts(payloads) },
  );
  return draft.data === data && sealed.metadata === text;
}
