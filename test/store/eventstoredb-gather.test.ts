/** Reads of a server that answers with something else than what was asked for. */
import { PassThrough } from "node:stream";
import { describe, expect, it } from "vitest";
import { type Asked, gather } from "#src/store/eventstoredb/gather.js";

type Item = Parameters<Asked<never>["pick"]>[0];

const fits: Asked<never>["fits"] = ({ stream, revision }, before) =>
  stream === "asked" && revision > (before?.revision ?? 2);

function item(revision: number, streamId = "asked", commit = revision) {
  const [id, type] = ["00000000-0000-8000-8000-000000000000", "started"];
  const position = { commit: BigInt(commit), prepare: BigInt(commit) };
  const [data, created] = [{}, new Date(0)];
  return {
    event: { streamId, revision: BigInt(revision), id, type, data, metadata: {}, isJson: true, position, created },
  };
}

function answered(...items: readonly ReturnType<typeof item>[]) {
  const read = new PassThrough({ objectMode: true });
  for (const each of items) read.write(each);
  read.end();
  let cancelled = 0;
  const asked = { cancel: () => void cancelled++, ms: 5000, max: 3, pick: (each: Item) => each, fits };
  return { read, asked, cancelled: () => cancelled };
}

describe("what a read of a server yields", () => {
  it("should be what was asked for", async () => {
    const { read, asked, cancelled } = answered(item(3), item(5), item(6));
    expect((await gather(read, asked)).map(({ revision }) => revision)).toEqual([3, 5, 6]);
    expect(cancelled()).toBe(0);
  });

  it.each([
    ["an event of another stream", [item(3), item(4, "other\u001b[2J")]],
    ["the same event again", [item(3), item(3)]],
    ["events backwards", [item(5), item(4)]],
    ["an event before the first", [item(2)]],
    ["an event without a place in the log", [item(3), item(4, "asked", 0)]],
    ["more events than were asked for", [item(3), item(4), item(5), item(6)]],
  ])("should not be believed: %s", async (_, items) => {
    const { read, asked, cancelled } = answered(...items);
    await expect(gather(read, asked)).rejects.toMatchObject({
      code: "HL_STORE_CORRUPT",
      message: expect.not.stringContaining("\u001b"),
    });
    expect(cancelled()).toBeGreaterThan(0);
  });

  it("should end once it is enough", async () => {
    const { read, asked, cancelled } = answered(item(3), item(4), item(5));
    const events = await gather(read, { ...asked, isEnough: ({ revision }) => revision === 4 });
    expect(events).toHaveLength(2);
    expect(cancelled()).toBe(1);
  });
});
