/** Writers, collections and deletions in any order, each held up at any await, while clocks go on. */
import { randomUUID } from "node:crypto";
import fc from "fast-check";
import { expect, it } from "vitest";
import { HookledgerError } from "#src/errors.js";
import { cut } from "#src/payload/archive/cut.js";
import { digest } from "#src/payload/digest.js";
import { collectGarbage } from "#src/store/eventstoredb/archive/collect.js";
import { ArchiveReader } from "#src/store/eventstoredb/archive/reader.js";
import { ArchiveWriter } from "#src/store/eventstoredb/archive/writer.js";
import type { Blob } from "#src/store/port.js";
import { AdapterTime } from "../support/adapter-time.js";
import { type Fault, MemoryServerLog } from "../support/server-log.js";
import { conversation } from "../support/shared-payloads.js";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const GRACE = 24 * HOUR;

/** They share most of their messages. */
const blobs: readonly Blob[] = [
  [1, 2, 3],
  [1, 2, 3, 4],
  [2, 3, 4],
  [5, 6, 7],
  [1, 5, 6],
].map((messages) => {
  const bytes = conversation(messages, 2000);
  return { digest: digest("payload", bytes), bytes };
});
const streamsOf = new Map(
  blobs.map((blob): [Blob, readonly string[]] => [
    blob,
    [blob.digest.replace("sha256:", "hookpayload-"), ...cut(blob.bytes).chunks.map(({ hash }) => `hookchunk-${hash}`)],
  ]),
);

type Dispatch = { readonly stream: string; readonly blob: Blob; deleted: boolean };

/** Numbers from a seed: what happens next, and how much time passes. */
class Chance {
  #state: number;
  constructor(seed: number) {
    this.#state = seed | 0;
  }
  below(n: number): number {
    this.#state = (Math.imul(this.#state, 1_664_525) + 1_013_904_223) | 0;
    return ((this.#state >>> 8) % 65_536) % n;
  }
  of<T>(choices: readonly T[]): T {
    return choices[this.below(choices.length)] as T;
  }
}

class World {
  readonly log = new MemoryServerLog();
  readonly time = new AdapterTime();
  readonly acknowledged: Dispatch[] = [];
  removals = 0;
  #held: (() => void)[] = [];
  readonly #chance: Chance;
  #running = 0;
  #writers = [this.#newWriter(), this.#newWriter()];
  #failure: unknown;

  constructor(seed: number, faults: boolean) {
    this.#chance = new Chance(seed);
    this.log.gate = ({ kind, type }, when) => {
      // The one thing that has to be quick: a mark bears the time at which it was made.
      if (kind === "append" && type === "condemned" && when === "before") return undefined;
      return new Promise((release) => this.#held.push(release));
    };
    if (faults) {
      this.log.fault = (): Fault | undefined =>
        this.#chance.below(12) === 0
          ? this.#chance.of(["unavailable", "lost-call", "lost-answer"] as const)
          : undefined;
    }
  }

  /** Lets one held call go on at a time, with time passing in between; starts something new now and then. */
  async run(steps: number): Promise<void> {
    for (let step = 0; step < steps || this.#running > 0; step++) {
      if (step < steps && this.#running < 8 && this.#chance.below(5) === 0) this.#start();
      if (step < steps && this.#chance.below(12) === 0)
        this.time.pass(this.#chance.of([1000, 5 * MINUTE, 9 * MINUTE, 15 * MINUTE, 2 * HOUR, 13 * HOUR, 25 * HOUR]));
      this.#release();
      await new Promise(setImmediate);
      if (this.#failure !== undefined) throw this.#failure;
      this.#check();
    }
  }

  /** Mostly whoever was let go on last, so that others stand still for long. */
  #release(): void {
    const last = this.#held.length - 1;
    const [release] = this.#held.splice(this.#chance.below(5) > 0 ? last : this.#chance.below(last + 1), 1);
    release?.();
  }

  #start(): void {
    const what = this.#chance.below(10);
    if (what < 4) this.#go(this.#write(this.#chance.of(this.#writers), this.#chance.of(blobs)));
    else if (what < 6) this.#go(this.#collect());
    else if (what < 8) this.#delete(this.#chance.of(blobs));
    else this.#writers = [this.#newWriter(), this.#chance.of(this.#writers)];
  }

  #go(work: Promise<void>): void {
    this.#running++;
    work
      .catch((error: unknown) => {
        if (!isOfTheServer(error)) this.#failure = error;
      })
      .finally(() => this.#running--);
  }

  /** As the lane of a stream does it. */
  async #write(writer: ArchiveWriter, blob: Blob): Promise<void> {
    const dispatch: Dispatch = { stream: `hookdispatch-${randomUUID()}`, blob, deleted: false };
    let kept = await writer.store([blob]);
    const data = { input: { digest: blob.digest } };
    await this.log.append(dispatch.stream, "any", [
      { id: randomUUID(), type: "started", content: { kind: "json", data, metadata: {} } },
    ]);
    while (writer.isStale(kept)) kept = await writer.store([blob]);
    this.acknowledged.push(dispatch);
  }

  async #collect(): Promise<void> {
    const { log, time } = this;
    const { removed } = await collectGarbage(log, time, { dryRun: false, now: time.wall(), graceMs: GRACE });
    this.removals += removed;
  }

  /** Every dispatch with that payload, so that nothing refers to it. */
  #delete(blob: Blob): void {
    for (const dispatch of this.acknowledged) {
      if (dispatch.blob !== blob) continue;
      dispatch.deleted = true;
      this.log.remove(dispatch.stream);
    }
    this.log.scavenge();
  }

  #newWriter(): ArchiveWriter {
    return new ArchiveWriter(this.log, this.time);
  }

  #check(): void {
    for (const { deleted, blob } of this.acknowledged) {
      if (deleted) continue;
      for (const stream of streamsOf.get(blob) ?? []) {
        if (!this.log.peek(stream).some(({ type }) => type === "content")) throw new Error(`${stream} is gone`);
      }
    }
  }

  async everything(): Promise<void> {
    this.log.gate = () => undefined;
    this.log.fault = () => undefined;
    const reader = new ArchiveReader(this.log, this.time);
    for (const { deleted, blob } of this.acknowledged) {
      if (deleted) continue;
      const read = await reader.read(blob.digest);
      expect(read.kind === "found" && Buffer.compare(read.bytes, blob.bytes) === 0).toBe(true);
    }
  }
}

/** Nobody was told that it succeeded. */
function isOfTheServer(error: unknown): boolean {
  if (!(error instanceof HookledgerError)) return false;
  return error.code === "HL_STORE_UNAVAILABLE" || error.code === "HL_STORE_AMBIGUOUS";
}

it("should never lose a payload that an acknowledged event refers to", async () => {
  let removals = 0;
  await fc.assert(
    fc.asyncProperty(fc.integer(), fc.boolean(), async (seed, faults) => {
      const world = new World(seed, faults);
      await world.run(1000);
      await world.everything();
      removals += world.removals;
    }),
    { numRuns: 50, endOnFailure: true },
  );
  // Or nothing was put at risk.
  expect(removals).toBeGreaterThan(0);
});
