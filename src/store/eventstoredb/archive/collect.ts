/**
 * Garbage collection on a server that cannot look for references and remove in one step. A collection condemns what nothing refers
 * to; one that runs a grace later removes what is still condemned and still not referred to, at the revision of the mark.
 *
 * Why what an event refers to stays: whoever stores it again behind the mark writes the content again, and the removal at the mark's
 * revision fails, or comes before that. Whoever saw it before the mark and was told of his event in time was so long before the second
 * collection began to read, which then sees the reference; whoever was not is told by `isStale` to store it again.
 */
import { HookledgerError } from "../../../errors.js";
import { references } from "../../../payload/archive/references.js";
import type { Collected, CollectOptions } from "../../port.js";
import { digestsIn } from "../../referenced.js";
import { CATEGORY } from "../catalogue/entries.js";
import { isConflict, patiently } from "../patience.js";
import type { ServerEvent, ServerLog } from "../server-log.js";
import type { Time } from "../time.js";
import { InFlight } from "./in-flight.js";
import { type Item, type Scratch, type Sized, withScratch } from "./scratch.js";
import { CHUNK, condemnation, condemnedAt, contentOf, PAYLOAD } from "./streams.js";

/** ms: well above what a writer takes for fresh, and clocks that differ. */
export const MIN_GRACE_MS = 60 * 60 * 1000;

/** Events of up to 64 KiB each, as a rule. */
const SCAN_EVENTS = 256;
const JUDGED_AT_ONCE = 128;
const IN_FLIGHT = { count: 16, bytes: Number.POSITIVE_INFINITY };
const MAX_ATTEMPTS = 4;

/**
 * `now` of the options: read before this is called. Throws what a ServerLog throws but for conflicts, HL_USAGE for a grace below
 * MIN_GRACE_MS if it is to remove anything, and what `withScratch` throws.
 */
export async function collectGarbage(
  log: ServerLog,
  time: Time,
  options: CollectOptions,
  onProgress: (events: number) => void = () => {},
): Promise<Collected> {
  if (!options.dryRun && options.graceMs < MIN_GRACE_MS) {
    throw new HookledgerError("HL_USAGE", `a grace of ${options.graceMs} ms is too short on a server`, {
      hint: `Writers need ${MIN_GRACE_MS / 60_000} minutes to notice; the default is 24 hours.`,
    });
  }
  return withScratch((scratch) => new Collection(log, time, options, scratch, onProgress).run());
}

type Verdict = "kept" | "marked" | "removed" | "gone";

class Collection {
  readonly #log: ServerLog;
  readonly #time: Time;
  readonly #options: CollectOptions;
  readonly #scratch: Scratch;
  readonly #onProgress: (events: number) => void;
  readonly #inFlight = new InFlight(IN_FLIGHT);
  readonly #started: number;
  #position = 0;
  #events = 0;

  constructor(
    log: ServerLog,
    time: Time,
    options: CollectOptions,
    scratch: Scratch,
    onProgress: (events: number) => void,
  ) {
    this.#log = log;
    this.#time = time;
    this.#options = options;
    this.#scratch = scratch;
    this.#onProgress = onProgress;
    this.#started = time.now();
  }

  async run(): Promise<Collected> {
    let [kept, marked, removed, removedBytes] = [0, 0, 0, 0];
    let page: readonly Sized[] = [];
    do {
      await this.#readReferences();
      page = this.#scratch.unreferenced(page.at(-1)?.item ?? null, JUDGED_AT_ONCE);
      const verdicts = await Promise.all(page.map(({ item }) => this.#inFlight.run(0, () => this.#judge(item))));
      for (const [i, { bytes }] of page.entries()) {
        if (verdicts[i] === "kept") kept++;
        if (verdicts[i] === "marked") marked++;
        if (verdicts[i] !== "removed") continue;
        removed++;
        removedBytes += bytes;
      }
    } while (page.length > 0);
    return { kept: kept + this.#scratch.referenced, marked, removed, removedBytes };
  }

  /** All that was appended since the last time. */
  async #readReferences(): Promise<void> {
    for (;;) {
      const { length } = await this.#readPage();
      if (length === 0) break;
      this.#events += length;
      this.#onProgress(this.#events);
    }
    this.#scratch.settle();
  }

  async #readPage(): Promise<readonly ServerEvent[]> {
    const events = await this.#log.readAll({
      after: this.#position,
      prefixes: [CATEGORY, PAYLOAD, CHUNK],
      max: SCAN_EVENTS,
    });
    this.#scratch.record(() => {
      for (const event of events) this.#record(event);
    });
    this.#position = events.at(-1)?.position ?? this.#position;
    return events;
  }

  #record(event: ServerEvent): void {
    if (event.stream.startsWith(CATEGORY)) {
      for (const text of textsOf(event)) {
        for (const digest of digestsIn(text)) {
          this.#scratch.name({ kind: "payload", hex: digest.slice("sha256:".length) });
        }
      }
      return;
    }
    const item = itemOf(event.stream);
    const bytes = contentOf(event);
    if (item === null || bytes === null) return;
    this.#scratch.keep(item, bytes.length);
    for (const hash of references(bytes)) this.#scratch.refer(item, hash);
  }

  /** Of something that nothing refers to. */
  async #judge(item: Item): Promise<Verdict> {
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      try {
        return await this.#sentence(streamOf(item));
      } catch (error) {
        if (!isConflict(error)) throw error;
      }
    }
    return "kept";
  }

  /** Throws HL_STORE_CONFLICT if somebody else writes there. */
  async #sentence(stream: string): Promise<Verdict> {
    const { now, graceMs, dryRun } = this.#options;
    const last = (await this.#log.readStream(stream, { direction: "backward", max: 1 }))?.[0];
    if (last === undefined) return "gone";
    const since = condemnedAt(last);
    if (since === null) {
      if (!dryRun) await patiently(this.#time, () => this.#log.append(stream, last.revision, [this.#condemnation()]));
      return "marked";
    }
    if (since + graceMs > now) return "marked";
    if (!dryRun) await patiently(this.#time, () => this.#log.deleteStream(stream, last.revision));
    return "removed";
  }

  /** Dated when it is made: a collection may take hours. */
  #condemnation() {
    return condemnation(this.#options.now + this.#time.now() - this.#started);
  }
}

function streamOf({ kind, hex }: Item): string {
  return (kind === "payload" ? PAYLOAD : CHUNK) + hex;
}

const ITEM = /^hook(payload|chunk)-([0-9a-f]{64})$/;

function itemOf(stream: string): Item | null {
  const [, kind, hex] = ITEM.exec(stream) ?? [];
  return hex === undefined ? null : { kind: kind === "payload" ? "payload" : "chunk", hex };
}

function* textsOf({ content }: ServerEvent): Generator<string> {
  if (content.kind === "json") yield* textsIn(content.data);
  else yield Buffer.from(content.data).toString("latin1");
}

/** Keys and values, without recursion: somebody else's event may nest as deep as it likes. */
function* textsIn(data: unknown): Generator<string> {
  const values: unknown[] = [data];
  while (values.length > 0) {
    const value = values.pop();
    if (typeof value === "string") yield value;
    if (typeof value !== "object" || value === null) continue;
    for (const [key, member] of Object.entries(value)) {
      yield key;
      values.push(member);
    }
  }
}
