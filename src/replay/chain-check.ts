import type { RecordedEvent } from "../store/port.js";
import { isEventType } from "../store/record/decode.js";
import { encodePayloadTexts, type ReadMetadata } from "../store/record/metadata.js";
import { seal } from "../store/seal.js";

const CHAIN_MEMBER = ',"chain":"';

/**
 * Does the recorded event come out again, letter for letter, when it is sealed behind `previousChain`? The covered part of the
 * metadata ends where its chain begins: inside a JSON string that mark could not stand unescaped.
 */
export function sealsTo(
  { type, id, revision, data, metadata: text }: RecordedEvent,
  metadata: ReadMetadata,
  previousChain: string,
): boolean {
  const end = text.indexOf(CHAIN_MEMBER);
  if (end < 0 || !isEventType(type)) return false;
  const draft = { id, type, data, metadata: `${text.slice(0, end)}}` };
  const sealed = seal(
    previousChain,
    revision,
    metadata.payloads.size === 0 ? draft : { ...draft, payloads: encodePayloadTexts(metadata.payloads) },
  );
  return sealed.metadata === text;
}
