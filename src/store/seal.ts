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
  const text = coveredText(previousChain, revision, draft);
  const chain = hash("sha256", text, "hex");
  const dataStart = DOMAIN.length + previousChain.length + BEFORE_DATA.length;
  const dataEnd = dataStart + draft.data.length;
  const metadataStart = dataEnd + BEFORE_METADATA.length;
  const covered = text.slice(metadataStart, metadataStart + draft.metadata.length - 1);
  const payloads = draft.payloads === undefined ? "" : `,"payloads":${draft.payloads}`;
  return {
    chain,
    data: text.slice(dataStart, dataEnd),
    metadata: `${covered},"chain":"${chain}"${payloads}}`,
  };
}

/** The chain alone, for whoever has the sealed texts already. */
export function chainAfter(previousChain: string, revision: number, draft: Covered): string {
  return hash("sha256", coveredText(previousChain, revision, draft), "hex");
}

type Covered = Pick<EventDraft, "type" | "data" | "metadata">;

const BEFORE_DATA = '{"data":';
const BEFORE_METADATA = ',"metadata":';

function coveredText(previousChain: string, revision: number, { type, data, metadata }: Covered): string {
  return `${DOMAIN}${previousChain}${BEFORE_DATA}${data}${BEFORE_METADATA}${metadata},"revision":${revision},"type":"${type}"}`;
}
