/** What every ledger must do with payloads that do not travel in their events; part of the store contract. */
import { describe, expect, it } from "vitest";
import { cut } from "#src/payload/archive/cut.js";
import type { EventStore } from "#src/store/port.js";
import { conversation, message, noise } from "../payload/archive/fields.js";
import { blobOf, further, numbered, opening } from "../support/store-fixtures.js";

/** Turns a bit of every chunk that is kept, or removes them; returns how many there were. */
export type SpoilChunks = (how: "alter" | "remove", folder: string) => number | Promise<number>;

/** `at`: the empty store of the test that runs, and where it may keep its files. */
export function blobContract(
  at: () => { readonly store: EventStore; readonly folder: string },
  spoilChunks: SpoilChunks | undefined,
): void {
  describe("blobs", () => {
    const digest = `sha256:${"ab".repeat(32)}` as const;

    it("should keep bytes by digest, as they were when the append was made", async () => {
      const bytes = Buffer.from("some bytes, in the middle of something larger").subarray(5, 10);
      const appended = at().store.append(opening(1, 1, { blobs: [{ digest, bytes }] }));
      bytes.fill(0);
      await appended;
      expect(Buffer.from((await blobOf(at().store, digest)) ?? []).toString()).toBe("bytes");
      expect(await at().store.readBlob(`sha256:${"00".repeat(32)}`)).toEqual({ kind: "missing" });
    });

    it("should keep the first bytes of a digest, and none of a refused append", async () => {
      const other = `sha256:${"cd".repeat(32)}` as const;
      await at().store.append(opening(1, 1, { blobs: [{ digest, bytes: Buffer.from("first") }] }));
      await at().store.append(opening(2, 1, { blobs: [{ digest, bytes: Buffer.from("other") }] }));
      expect(Buffer.from((await blobOf(at().store, digest)) ?? []).toString()).toBe("first");
      const refused = further(1, 7, 1, { blobs: [{ digest: other, bytes: Buffer.from("x") }] });
      await expect(at().store.append(refused)).rejects.toMatchObject({ code: "HL_STORE_CONFLICT" });
      expect(await at().store.readBlob(other)).toEqual({ kind: "missing" });
    });

    it("should keep large and empty blobs", async () => {
      const large = Buffer.alloc(5 * 1024 * 1024, "large");
      const empty = `sha256:${"ee".repeat(32)}` as const;
      const blobs = [
        { digest, bytes: large },
        { digest: empty, bytes: new Uint8Array() },
      ];
      await at().store.append(opening(1, 1, { blobs }));
      expect(large.equals((await blobOf(at().store, digest)) ?? Buffer.alloc(0))).toBe(true);
      expect(await blobOf(at().store, empty)).toHaveLength(0);
    });

    it("should keep bytes of every shape: of many messages, of a large one, of none, and such as look like our own", async () => {
      const shapes = [
        conversation(Array.from({ length: 300 }, (_, i) => message(`m${i}`, (i * 37) % 4000))),
        conversation([message("small", 50), message("large", 2_000_000), message("last", 500)]),
        noise("raw", 300_000),
        Buffer.from([0]),
        Buffer.from([0, 1, 5, 20, 1, 2, 3, 4, 5]),
        cut(noise("root of another", 300_000)).root,
        Buffer.alloc(200_000),
      ];
      const blobs = shapes.map((bytes, i) => ({ digest: numbered(i), bytes }));
      await at().store.append(opening(1, 1, { blobs }));
      for (const { digest, bytes } of blobs) {
        expect(Buffer.compare((await blobOf(at().store, digest)) ?? Buffer.alloc(0), bytes)).toBe(0);
      }
    });

    it("should keep every state of a conversation that grows, loses its beginning and is edited", async () => {
      const messages = Array.from({ length: 60 }, (_, i) => message(`m${i}`, 1500));
      const states = [20, 21, 40, 60].map((length) => messages.slice(0, length));
      states.push(messages.slice(1), messages.slice(30), messages.with(25, message("edited", 700)));
      for (const [n, state] of states.entries()) {
        await at().store.append(opening(n, 1, { blobs: [{ digest: numbered(n), bytes: conversation(state) }] }));
      }
      for (const [n, state] of states.entries()) {
        const bytes = (await blobOf(at().store, numbered(n))) ?? Buffer.alloc(0);
        expect(Buffer.compare(bytes, conversation(state))).toBe(0);
      }
    });

    if (spoilChunks !== undefined) {
      it.each(["alter", "remove"] as const)("should tell that somebody %sed chunks", async (how) => {
        const bytes = conversation(Array.from({ length: 60 }, (_, i) => message(`m${i}`, 1500)));
        await at().store.append(opening(1, 1, { blobs: [{ digest, bytes }] }));
        expect(await blobOf(at().store, digest)).not.toBeNull();
        expect(await spoilChunks(how, at().folder)).toBeGreaterThan(60);
        const detail = how === "alter" ? /^chunk [0-9a-f]{64} is altered$/ : /^chunk [0-9a-f]{64} is missing$/;
        expect(await at().store.readBlob(digest)).toEqual({ kind: "damaged", detail: expect.stringMatching(detail) });
      });
    }
  });
}
