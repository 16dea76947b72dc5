import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import { replayStream } from "#src/replay/replay.js";
import { documentAt } from "./documents.js";

type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };
type Event = {
  readonly revision: number;
  readonly id: string;
  readonly type: string;
  readonly data: { readonly [key: string]: Json };
  readonly metadata: { readonly chain: string; readonly payloads?: Readonly<Record<string, string>> };
};

/** What RFC 8785 comes to for texts, whole numbers and plain keys. */
function canonical(value: Json): string {
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${members.map(([key, member]) => `${JSON.stringify(key)}:${canonical(member)}`).join(",")}}`;
}

function sha256(...parts: readonly (string | Uint8Array)[]): string {
  const hash = createHash("sha256");
  for (const part of parts) hash.update(part);
  return hash.digest("hex");
}

describe("the record in docs/ledger.md", () => {
  const [block] = documentAt("docs/ledger.md").blocks.filter(({ directive }) => directive?.kind === "example");
  const events: readonly Event[] = JSON.parse(block?.text ?? "[]");

  it("should hold by the rules that stand beside it", () => {
    expect(events.map(({ revision }) => revision)).toEqual([0, 1, 2, 3]);
    let previous = "";
    for (const { revision, type, data, metadata } of events) {
      const { chain, payloads = {}, ...covered } = metadata;
      const text = canonical({ data, metadata: covered, revision, type });
      expect(chain).toBe(sha256("hookledger/chain/v1\0", previous, text));
      for (const [digest, base64] of Object.entries(payloads))
        expect(digest).toBe(`sha256:${sha256("hookledger/payload/v1\0", Buffer.from(base64, "base64"))}`);
      previous = chain;
    }
  });

  it("should replay to what the page says of it", () => {
    const dispatchId = String(events[0]?.data["dispatchId"]);
    const stream = `hookdispatch-${dispatchId}` as const;
    const recorded = events.map(({ data, metadata, ...event }, at) => {
      const { chain, payloads, ...covered } = metadata;
      const sealed = `${canonical(covered).slice(0, -1)},"chain":"${chain}"${payloads === undefined ? "" : `,"payloads":${canonical(payloads)}`}}`;
      return { ...event, stream, position: at + 1, data: canonical(data), metadata: sealed };
    });
    const replayed = replayStream({ stream, head: null, events: recorded });
    expect(replayed).toMatchObject({
      session: "s-42",
      turn: "turn-7",
      verdict: { decision: "deny", decidedBy: "guard", reason: "no shell here", allowed: false },
    });
  });
});
