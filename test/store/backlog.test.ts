import { describe, expect, it } from "vitest";
import { Backlog, MAX_BACKLOG_BYTES } from "#src/store/backlog.js";
import type { AppendRequest } from "#src/store/port.js";
import { draft, opening } from "../support/store-fixtures.js";

/** An append of exactly so many bytes. */
function sized(bytes: number): AppendRequest {
  const { data, metadata } = draft(0);
  const blob = {
    digest: `sha256:${"ab".repeat(32)}`,
    bytes: new Uint8Array(bytes - data.length - metadata.length),
  } as const;
  return opening(1, 1, { blobs: [blob] });
}

describe("a backlog", () => {
  it("should count events, their payloads and blobs, until they are released", () => {
    const backlog = new Backlog();
    const { data, metadata } = draft(0);
    const payloads = '{"sha256:00":"AA=="}';
    const events = [draft(0, { payloads }), draft(0)];
    const bytes = backlog.admit(
      opening(1, 2, { events, blobs: [{ digest: `sha256:${"ab".repeat(32)}`, bytes: new Uint8Array(7) }] }),
    );
    expect(bytes).toBe(2 * (data.length + metadata.length) + payloads.length + 7);
    expect(backlog.bytes).toBe(bytes);
    backlog.release(bytes);
    expect(backlog.bytes).toBe(0);
  });

  it("should take what fits to the byte, and refuse one more without counting it", () => {
    const backlog = new Backlog(1000);
    backlog.admit(sized(400));
    expect(() => backlog.admit(sized(601))).toThrow(expect.objectContaining({ code: "HL_STORE_BACKLOG" }));
    expect(backlog.bytes).toBe(400);
    backlog.admit(sized(600));
    expect(backlog.bytes).toBe(1000);
  });

  it("should let one append pass that is larger than the bound, when nothing waits", () => {
    const backlog = new Backlog(1000);
    const large = backlog.admit(sized(5000));
    expect(() => backlog.admit(sized(100))).toThrow(/5000 bytes wait .* no room for 100 more/);
    backlog.release(large);
    expect(backlog.admit(sized(100))).toBe(100);
  });

  it("should hold 64 MiB unless told otherwise", () => {
    const backlog = new Backlog();
    backlog.admit(sized(MAX_BACKLOG_BYTES - 100));
    backlog.admit(sized(100));
    expect(() => backlog.admit(sized(100))).toThrow();
  });
});
