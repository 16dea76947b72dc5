/** Ledgers whose chain was made for what they say now, as somebody could who knows the format and not the product. */
import { createHash } from "node:crypto";
import { draftOf, type LedgerRows } from "./ledgers.js";

export type Texts = { readonly data: string /** Without chain and payloads. */; readonly metadata: string };

/** Of one stream. What is stored is `spelt`; what the chain covers of it is `covered`: the stored texts, or those they came from. */
export function forged(
  rows: LedgerRows,
  spelt: (texts: Texts, revision: number) => Texts,
  covers: "what is stored" | "what it was" = "what is stored",
): LedgerRows {
  let chain = "";
  const events = rows.events.map((event) => {
    const draft = draftOf(event);
    const { type, revision } = event;
    const stored = spelt(draft, revision);
    const { data, metadata } = covers === "what is stored" ? stored : draft;
    chain = createHash("sha256")
      .update(
        `hookledger/chain/v1\0${chain}{"data":${data},"metadata":${metadata},"revision":${revision},"type":"${type}"}`,
      )
      .digest("hex");
    const payloads = draft.payloads === undefined ? "" : `,"payloads":${draft.payloads}`;
    const sealed = `${stored.metadata.slice(0, -1)},"chain":"${chain}"${payloads}}`;
    return { ...event, data: stored.data, metadata: sealed };
  });
  return { ...rows, events, heads: rows.heads.map((head) => ({ ...head, chain })) };
}
