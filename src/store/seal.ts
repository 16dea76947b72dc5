/**
 * The chain that binds every event to all earlier ones of its stream:
 * chain(n) = hex SHA-256 of "hookledger/chain/v1\0", chain(n - 1) ("" before revision 0), and the RFC 8785 text of
 * {data, metadata without chain and payloads, revision, type}.
 */
import { hash } from "node:crypto";
import type { EventDraft } from "./port.js";

const DOMAIN = "hookledger/chain/v1\0";

export type Sealed = {
  /** Lower-case hex SHA-256. */
  readonly chain: string;
  /** The draft's, cut from the text that was hashed: one piece in memory, however many parts it was put together from. */
  readonly data: string;
  /** The metadata text as it is stored: the draft's, then `chain`, then `payloads` if there are any. */
  readonly metadata: string;
};

/** Seals a draft, whose texts are canonical by contract, so that nothing is parsed or printed again. */
export function seal(previousChain: string, revision: number, draft: EventDraft): Sealed {
  const before = `${DOMAIN}${previousChain}{"data":`;
  const between = ',"metadata":';
  const text = `${before}${draft.data}${between}${draft.metadata},"revision":${revision},"type":"${draft.type}"}`;
  const chain = hash("sha256", text, "hex");
  const dataEnd = before.length + draft.data.length;
  const metadataEnd = dataEnd + between.length + draft.metadata.length;
  const covered = text.slice(dataEnd + between.length, metadataEnd - 1);
  const payloads = draft.payloads === undefined ? "" : `,"payloads":${draft.payloads}`;
  return {
    chain,
    data: text.slice(before.length, dataEnd),
    metadata: `${covered},"chain":"${chain}"${payloads}}`,
  };
}
