/**
 * The appends of one stream, in order. They follow each other without waiting, each at the exact revision behind the one before; as
 * soon as one fails nothing more is sent, what is under way is waited for, and then the stream itself says what became of them.
 */
import { HookledgerError } from "../../errors.js";
import { conflict, isSameEvent } from "../append.js";
import type { AppendRequest, AppendResult, Blob, RecordedEvent, StreamName } from "../port.js";
import type { Kept } from "./archive/writer.js";
import type { Enlisting } from "./catalogue/enlist.js";
import { chainOf, START, sealedDrafts, type Tip, toRecorded } from "./event.js";
import type { ServerLog } from "./server-log.js";
import { answer, asStoreError, inDoubt, type Job, notWritten, refuse, type Task, taskOf } from "./task.js";
import { type Moment, momentOf, msSince, type Time } from "./time.js";

/** Events of one read. */
const PAGE = 512;
/** ms before the stream is read back again, doubled each time. The first time is at once. */
const FIRST_PAUSE = 25;
const LAST_PAUSE = 1000;
/** Times that the server may call a revision wrong which it then says is right: a stream that was deleted for good. */
const MAX_CONTRADICTIONS = 3;

/**
 * ms after which a stream may have been taken for a dead writer's. A revision tells apart who was first, not who wrote what is before
 * it: two appends on their way to a stream to which somebody else has just added as much as the first of them would be taken for
 * that one's successor. So only those follow each other unacknowledged that go to a stream which is certainly this writer's.
 */
const CERTAINLY_OWN = 5000;

/** What a lane needs from around it. */
export type LaneContext = {
  readonly log: ServerLog;
  readonly time: Time;
  /** Enters a new stream into the catalogue. */
  readonly enlist: (stream: StreamName, session: string | null) => Enlisting;
  /** Keeps payloads; all of them are acknowledged when it resolves. */
  readonly keep: (blobs: readonly Blob[]) => Promise<Kept>;
  /** May a collection have removed some of them since? */
  readonly isStale: (kept: Kept) => boolean;
};

export class Lane {
  readonly #stream: StreamName;
  readonly #context: LaneContext;
  /** Of all that was sent; undefined: not known. */
  #tip: Tip | undefined;
  /** To be sent, or to be sent again. */
  #queue: Task[] = [];
  #flying = 0;
  /** When the stream was last seen to be this writer's; undefined: it never was, or is in doubt. */
  #own: Moment | undefined;
  #state: "flowing" | "preparing" | "settling" | "reading back" = "flowing";
  #setbacks = 0;

  constructor(stream: StreamName, context: LaneContext) {
    this.#stream = stream;
    this.#context = context;
  }

  get idle(): boolean {
    return this.#queue.length === 0 && this.#flying === 0 && this.#state === "flowing";
  }

  /** Takes an append; it is answered in its time, whatever happens. */
  take(job: Job): void {
    const task = taskOf(job, (late) => this.#expire(late));
    this.#queue.push(task);
    this.#flow();
  }

  #flow(): void {
    while (this.#state === "flowing") {
      const [task] = this.#queue;
      if (task === undefined) return;
      if (task.answered) {
        this.#queue.shift();
        continue;
      }
      if (this.#flying > 0 && !this.#isOwn()) return;
      const tip = this.#tip ?? (task.request.expected === "none" ? START : undefined);
      if (tip === undefined || tip.revision + 1 !== task.first) {
        this.#stop();
        return;
      }
      const prepared = this.#isKept(task) ? this.#enlist(task) : this.#keep(task);
      if (prepared !== null) {
        this.#prepare(task, prepared);
        return;
      }
      this.#queue.shift();
      this.#send(task, tip);
    }
  }

  #isOwn(): boolean {
    return this.#own !== undefined && msSince(this.#context.time, this.#own) < CERTAINLY_OWN;
  }

  /** For what waited too long it has to be looked again: nothing refers to it yet, so that a collection may have removed it. */
  #isKept({ kept }: Task): boolean {
    return kept === null || (kept !== undefined && !this.#context.isStale(kept));
  }

  async #keep(task: Task): Promise<void> {
    task.kept = await this.#context.keep(task.request.blobs ?? []);
  }

  /** What has to be on its way before the events are; null: nothing. */
  #enlist(task: Task): Promise<void> | null {
    if (task.enlisted !== undefined) return null;
    const { sent, written } = this.#context.enlist(this.#stream, task.request.session ?? null);
    task.enlisted = written;
    return sent;
  }

  #prepare(task: Task, work: Promise<void>): void {
    this.#state = "preparing";
    work.then(
      () => {
        this.#state = "flowing";
        this.#flow();
      },
      (error: unknown) => {
        this.#state = "flowing";
        this.#failed(task, error, "preparing");
        this.#stop();
      },
    );
  }

  #send(task: Task, tip: Tip): void {
    const { request } = task;
    let sealed: ReturnType<typeof sealedDrafts>;
    try {
      sealed = sealedDrafts(tip, request.events);
    } catch (error) {
      this.#failed(task, error, "preparing");
      this.#stop();
      return;
    }
    this.#tip = sealed.tip;
    if (tip === START) this.#own = momentOf(this.#context.time);
    this.#flying++;
    task.flying = true;
    const written = this.#context.log.append(this.#stream, request.expected, sealed.drafts);
    Promise.allSettled([written, task.enlisted]).then(([events, entries]) => {
      this.#flying--;
      task.flying = false;
      if (entries.status === "rejected") task.enlisted = undefined;
      if (events.status === "rejected") this.#failed(task, events.reason, "sending");
      else if (events.value.revision !== sealed.tip.revision) this.#misplaced(task, events.value.revision);
      else if (entries.status === "rejected") this.#failed(task, entries.reason, "enlisting");
      else {
        this.#setbacks = 0;
        if (this.#own !== undefined) this.#own = momentOf(this.#context.time);
        this.#acknowledge(task, events.value);
      }
      if (this.#state === "settling") this.#stop();
      else this.#flow();
    });
  }

  /** What took so long that its payloads may be gone again is only answered once they are there. */
  #acknowledge(task: Task, result: AppendResult): void {
    if (this.#isKept(task)) {
      answer(task, result);
      return;
    }
    task.doubtful = true;
    this.#keep(task).then(
      () => this.#acknowledge(task, result),
      (error: unknown) => {
        task.last = asStoreError(error, this.#stream);
        refuse(task, inDoubt(task, this.#stream));
      },
    );
  }

  /** What failed takes its place before what was behind it. */
  #failed(task: Task, error: unknown, at: "preparing" | "sending" | "enlisting"): void {
    const failure = asStoreError(error, this.#stream);
    task.last = failure;
    if (this.#state === "flowing") this.#state = "settling";
    switch (failure.code) {
      case "HL_STORE_DENIED":
      case "HL_LIMIT_APPEND":
      case "HL_USAGE":
      case "HL_STORE_CLOSED":
      case "HL_INTERNAL":
        if (task.doubtful || at === "enlisting") refuse(task, inDoubt(task, this.#stream));
        else refuse(task, failure);
        return;
      case "HL_STORE_CONFLICT":
        break;
      case "HL_STORE_UNAVAILABLE":
        task.doubtful ||= at === "enlisting";
        break;
      default:
        task.doubtful ||= at !== "preparing";
    }
    if (task.answered) return;
    const behind = this.#queue.findIndex(({ first }) => first > task.first);
    if (at !== "preparing") this.#queue.splice(behind < 0 ? this.#queue.length : behind, 0, task);
  }

  /**
   * Where the stream was to be new it was deleted once, and goes on counting from there: what was just written is none of ours to keep.
   * Anywhere else the server has said nothing that could be believed, and the stream itself is asked.
   */
  #misplaced(task: Task, revision: number): void {
    if (task.request.expected !== "none") {
      const says = `the server says that ${this.#stream} is at revision ${revision}, where it cannot be`;
      this.#failed(task, new HookledgerError("HL_STORE_AMBIGUOUS", says), "sending");
      return;
    }
    this.#state = "settling";
    this.#context.log.deleteStream(this.#stream, revision).catch(() => {});
    refuse(
      task,
      new HookledgerError("HL_STORE_CONFLICT", `${this.#stream} was deleted, and its revisions cannot begin again`, {
        hint: "Dispatch under an id that was never used.",
      }),
    );
  }

  #stop(): void {
    if (this.#state === "flowing") this.#state = "settling";
    if (this.#state !== "settling" || this.#flying > 0) return;
    this.#state = "reading back";
    this.#tip = undefined;
    this.#own = undefined;
    void this.#readBack();
  }

  async #readBack(): Promise<void> {
    for (;;) {
      if (this.#setbacks > 0) await pause(Math.min(FIRST_PAUSE * 2 ** Math.min(this.#setbacks - 1, 10), LAST_PAUSE));
      this.#setbacks++;
      this.#queue = this.#queue.filter(({ answered }) => !answered);
      if (this.#queue.length === 0) break;
      try {
        const there = await this.#read(Math.min(...this.#queue.map(({ first }) => first)));
        this.#tip = there.tip;
        await this.#settle(there.events, there.tip.revision);
        break;
      } catch (error) {
        const failure = asStoreError(error, this.#stream);
        for (const task of this.#queue) task.last = failure;
        if (failure.code === "HL_STORE_UNAVAILABLE" || failure.code === "HL_STORE_AMBIGUOUS") continue;
        for (const task of this.#queue.splice(0)) refuse(task, task.doubtful ? inDoubt(task, this.#stream) : failure);
        break;
      }
    }
    this.#state = "flowing";
    this.#flow();
  }

  /** The events from a revision on, and where the stream stands. */
  async #read(from: number): Promise<{ readonly events: readonly RecordedEvent[]; readonly tip: Tip }> {
    const { log } = this.#context;
    const events: RecordedEvent[] = [];
    let tip: Tip | undefined;
    for (let next = Math.max(0, from); ; ) {
      const page = await log.readStream(this.#stream, { direction: "forward", from: next, max: PAGE });
      const last = page?.at(-1);
      for (const event of page ?? []) events.push(toRecorded(event));
      if (last !== undefined) tip = { revision: last.revision, chain: chainOf(last) };
      if (page === null || last === undefined || page.length < PAGE) break;
      next = last.revision + 1;
    }
    if (tip !== undefined) return { events, tip };
    const [last] = (await log.readStream(this.#stream, { direction: "backward", max: 1 })) ?? [];
    if (last === undefined) return { events, tip: START };
    if (last.revision >= from) {
      // Somebody was quicker than the second look; or a server contradicts itself, and then not without end.
      throw new HookledgerError("HL_STORE_UNAVAILABLE", `${this.#stream} changes while it is read`);
    }
    return { events, tip: { revision: last.revision, chain: chainOf(last) } };
  }

  /** In order: acknowledges what is there, refuses what cannot be any more, and leaves the rest to be sent. */
  async #settle(events: readonly RecordedEvent[], last: number): Promise<void> {
    for (let [task] = this.#queue; task !== undefined; [task] = this.#queue) {
      const { request, first } = task;
      const there = events.filter(({ revision }) => revision >= first && revision < first + request.events.length);
      const end = there.at(-1);
      if (end !== undefined && isBatch(there, request)) {
        task.doubtful = true;
        await this.#listed(task);
        this.#acknowledge(task, { revision: end.revision, position: end.position });
      } else if (last === first - 1 && !this.#contradicted(task)) {
        if (last < 0 || this.#tip?.chain !== "") return;
        refuse(task, new HookledgerError("HL_STORE_CORRUPT", `the last event of ${this.#stream} carries no chain`));
      } else this.#refuseFrom(first, last);
      this.#setbacks = 0;
      this.#queue.shift();
    }
  }

  /** With what was to follow it directly: what is there now is not what that was to follow. */
  #refuseFrom(first: number, last: number): void {
    let next = first;
    for (const task of this.#queue) {
      if (task.first !== next) continue;
      next += task.request.events.length;
      refuse(task, conflict(this.#stream, task.request.expected, last < 0 ? undefined : last));
    }
  }

  async #listed(task: Task): Promise<void> {
    this.#enlist(task);
    try {
      await task.enlisted;
    } catch (error) {
      task.enlisted = undefined;
      throw error;
    }
  }

  /** Has the server called the revision wrong although its stream is right where the append expects it, and not only once? */
  #contradicted(task: Task): boolean {
    if (task.last?.code === "HL_STORE_CONFLICT") task.contradictions++;
    task.last = undefined;
    return task.contradictions >= MAX_CONTRADICTIONS;
  }

  #expire(task: Task): void {
    const doubtful = task.flying || task.doubtful;
    refuse(task, doubtful ? inDoubt(task, this.#stream) : notWritten(task, this.#stream));
  }
}

function isBatch(there: readonly RecordedEvent[], { events }: AppendRequest): boolean {
  return events.every((draft, i) => {
    const recorded = there[i];
    return recorded !== undefined && isSameEvent(recorded, draft);
  });
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
