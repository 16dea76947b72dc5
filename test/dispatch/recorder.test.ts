import { describe, expect, it } from "vitest";
import type { Digest, DispatchEvent, Started } from "#src/core/events.js";
import { INLINE_PAYLOAD_BYTES, Recorder } from "#src/dispatch/recorder.js";
import { digest } from "#src/payload/digest.js";
import { openMemoryStore } from "#src/store/memory.js";
import { FaultyStore, onlyNth, REFUSE } from "../support/faulty-store.js";
import { chain, invoked, started } from "../support/given.js";
import { ulidOf } from "../support/ledger.js";
import { settled, VirtualClock } from "../support/virtual-clock.js";

const MOMENT = { at: "2026-01-01T00:00:00.000Z", offsetNs: 0 };

function recorderOn(store: FaultyStore): Recorder {
  return new Recorder(store, ulidOf(1), { engineVersion: "0", writer: store.writer }, new VirtualClock());
}

function startedOn(input: Digest, size: number): Started {
  return started(chain("veto:guard"), { dispatchId: ulidOf(1), input: { digest: input, size, encoding: "proto" } });
}

describe("a recorder", () => {
  it.each([
    [INLINE_PAYLOAD_BYTES, true],
    [INLINE_PAYLOAD_BYTES + 1, false],
  ])("should send a payload of %i bytes along with its event: %s", async (size, inline) => {
    const store = new FaultyStore(openMemoryStore());
    const bytes = new Uint8Array(size);
    const input = digest("payload", bytes);
    const recorder = recorderOn(store);
    recorder.record(startedOn(input, size), MOMENT, [{ digest: input, bytes }]);
    await recorder.durable();
    const [{ events, blobs = [] }] = store.requests as [(typeof store.requests)[number]];
    expect(events[0]?.payloads?.includes(input) ?? false).toBe(inline);
    expect(blobs.map((blob) => blob.digest)).toEqual(inline ? [] : [input]);
  });

  describe("of more than one append takes", () => {
    const large = (index: number): DispatchEvent => ({
      type: "outcome",
      index,
      class: "failed",
      error: { category: "UNKNOWN", message: "m".repeat(180_000) },
    });

    async function recordLarge(store: FaultyStore): Promise<Recorder> {
      const recorder = new Recorder(
        store,
        ulidOf(1),
        { engineVersion: "0", writer: store.writer, session: "s" },
        new VirtualClock(),
      );
      const six = chain(...["a", "b", "c", "d", "e", "f"].map((id) => `observe:${id}`));
      const input = digest("payload", "");
      recorder.record(
        started(six, { dispatchId: ulidOf(1), input: { digest: input, size: 0, encoding: "proto" } }),
        MOMENT,
      );
      for (const { index } of six) recorder.record({ ...invoked(index), saw: input }, MOMENT);
      for (const { index } of six) {
        const bytes = new Uint8Array(INLINE_PAYLOAD_BYTES + 1).fill(index);
        recorder.record(large(index), MOMENT, [{ digest: digest("payload", bytes), bytes }]);
      }
      return recorder;
    }

    it("should chain as few as the store's bound allows, with one barrier, and each blob beside its event", async () => {
      const store = new FaultyStore(openMemoryStore());
      const recorder = await recordLarge(store);
      recorder.attach({ digest: digest("config", "{}"), bytes: new Uint8Array(2) });
      await recorder.durable();
      expect(
        store.requests.map(({ expected, events, barrier, session, blobs = [] }) => [
          expected,
          events.length,
          barrier,
          session,
          blobs.length,
        ]),
      ).toEqual([
        ["none", 11, false, "s", 1 + 4],
        [10, 2, true, undefined, 2],
      ]);
      expect((await store.readStream(recorder.stream))?.events).toHaveLength(13);
    });

    it("should say what became of the first that failed, and not of those behind it", async () => {
      const store = new FaultyStore(openMemoryStore(), onlyNth(1, { does: "refuse", code: "HL_STORE_BACKLOG" }));
      const recorder = await recordLarge(store);
      await expect(recorder.durable()).rejects.toMatchObject({ code: "HL_STORE_BACKLOG" });
      expect(store.requests).toHaveLength(2);
      expect(await store.readStream(recorder.stream)).toBeNull();
    });
  });

  it("should ask the store for nothing more once it has failed, also of what was recorded before that was known", async () => {
    const store = new FaultyStore(openMemoryStore(), onlyNth(1, REFUSE));
    const recorder = recorderOn(store);
    const input = digest("payload", "");
    recorder.record(startedOn(input, 0), MOMENT, [{ digest: input, bytes: new Uint8Array(0) }]);
    const durable = recorder.durable();
    recorder.record({ ...invoked(0), saw: input }, MOMENT);
    await expect(durable).rejects.toMatchObject({ code: REFUSE.does === "refuse" ? REFUSE.code : "" });
    await settled();
    await expect(recorder.durable()).rejects.toMatchObject({ code: "HL_STORE_UNAVAILABLE" });
    expect(store.requests).toHaveLength(1);
    expect(recorder.failure).toMatchObject({ code: "HL_STORE_UNAVAILABLE" });
  });
});
