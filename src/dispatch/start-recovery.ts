/** What crashed kernels left open is closed while a new one begins its work. */
import { HookledgerError } from "../errors.js";
import { recover } from "../replay/recover.js";
import { type EventStore, registersWriters } from "../store/port.js";
import { type LogSink, loggerFor } from "../subscribers/log.js";
import type { Clock } from "./clock.js";
import { within } from "./patient-store.js";
import { said } from "./said.js";

/** Dispatches, the newest first: what was open when a writer died is among its last. */
const MAX_AFTER_A_DEATH = 10_000;
/** The same where nobody can tell whether anybody died, and every start looks. */
const MAX_UNKNOWING = 1_000;

/** Nobody's name. */
const NOBODY = "0".repeat(26);

/**
 * Begins when it is made. Costs nothing where no writer died: on a ledger in memory, and on one in a file that all its writers have closed.
 */
export class StartRecovery {
  /** Ids of what was closed, after `timeoutMs` at the latest. Never rejects: what goes wrong is logged, and left to `recover`. */
  readonly done: Promise<readonly string[]>;
  readonly #stop = new AbortController();
  readonly #closed: string[] = [];

  constructor(store: EventStore, clock: Clock, timeoutMs: number, sink: LogSink) {
    const log = loggerFor("kernel", sink);
    const late = (): HookledgerError => {
      this.#stop.abort();
      return new HookledgerError("HL_STORE_UNAVAILABLE", `it took more than ${timeoutMs} ms`);
    };
    this.done = within(this.#run(store, clock), clock, timeoutMs, late)
      .catch((error: unknown) => log.warn(`what a crash may have left open is not all closed: ${said(error)}`))
      .then(() => {
        const { length } = this.#closed;
        if (length > 0) log.info(`${length} dispatches that a crash had left open are closed`);
        return [...this.#closed];
      });
  }

  /** Ends it before the next dispatch that it would look at. */
  async stop(): Promise<void> {
    this.#stop.abort();
    await this.done;
  }

  async #run(store: EventStore, clock: Clock): Promise<void> {
    const newest = await howMany(store);
    if (newest === 0) return;
    const options = { dryRun: false, now: clock.wall(), newest, signal: this.#stop.signal };
    for await (const recovered of recover(store, options)) {
      if (recovered.kind === "closed") this.#closed.push(recovered.dispatchId);
    }
  }
}

async function howMany(store: EventStore): Promise<number> {
  if (registersWriters(store)) return (await store.deadWriters()).length === 0 ? 0 : MAX_AFTER_A_DEATH;
  return (await store.writerState(NOBODY)) === "unknown" ? MAX_UNKNOWING : 0;
}
