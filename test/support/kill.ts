/** Starts test/support/kill-child.mjs or another such script, follows what it says, and kills it at a moment that is counted, not timed. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { Divergence } from "#src/replay/verify.js";
import { verifyAll } from "#src/replay/verify-all.js";
import type { EventStore } from "#src/store/port.js";
import { decodeEvent } from "#src/store/record/decode.js";
import { collect } from "./store-fixtures.js";

const SCRIPT = fileURLToPath(new URL("./kill-child.mjs", import.meta.url));

/** A decision that a child was handed out. */
export type Acknowledged = {
  readonly n: number;
  readonly dispatchId: string;
  readonly status: string;
  readonly decision: string | null;
  readonly allowed: boolean;
  readonly recorded: boolean;
  readonly payload: string | null;
};

export class KillChild {
  readonly #process: ChildProcess;
  readonly #ended: Promise<unknown>;
  #text = "";
  #changed: () => void = () => {};

  /** `url`: of the ledger. */
  constructor(
    task: "dispatch" | "recover" | "start" | "read" | { readonly script: string },
    url: string,
    ...args: readonly (string | number)[]
  ) {
    const command = typeof task === "string" ? [SCRIPT, task] : [task.script];
    this.#process = spawn(process.execPath, [...command, url, ...args.map(String)], {
      stdio: ["pipe", "pipe", "inherit"],
    });
    this.#ended = once(this.#process, "close").then(() => this.#changed());
    this.#process.stdout?.setEncoding("utf8").on("data", (text: string) => {
      this.#text += text;
      this.#changed();
    });
    this.#process.stdin?.on("error", () => {});
  }

  /** Whole lines; what a kill cut off was not said. */
  lines(): readonly string[] {
    return this.#text.split("\n").slice(0, -1);
  }

  /** What followed `word` in each line that begins with it. */
  all(word: string): readonly string[] {
    return this.lines().flatMap((line) => (line.startsWith(`${word} `) ? line.slice(word.length + 1) : []));
  }

  acknowledged(): readonly Acknowledged[] {
    return this.all("ack").map((json): Acknowledged => JSON.parse(json));
  }

  /** Resolves once it has said that much, in bytes. */
  said(bytes: number): Promise<void> {
    return this.#until(() => this.#text.length >= bytes);
  }

  saidLine(line: string): Promise<void> {
    return this.#until(() => this.lines().includes(line));
  }

  async killAfter(bytes: number): Promise<void> {
    await this.said(bytes);
    await this.kill();
  }

  async kill(): Promise<void> {
    this.#process.kill("SIGKILL");
    await this.#ended;
  }

  proceed(): void {
    this.#process.stdin?.write("\n");
  }

  /** Resolves with its exit code once it has ended by itself. */
  async finished(): Promise<number | null> {
    await this.#ended;
    return this.#process.exitCode;
  }

  /** Asks it to stop; resolves with its exit code. */
  async stop(): Promise<number | null> {
    this.#process.stdin?.end();
    await this.#ended;
    return this.#process.exitCode;
  }

  async #until(condition: () => boolean): Promise<void> {
    while (!condition()) {
      if (this.#process.exitCode !== null) throw new Error(`ended after ${this.#text.slice(-500)}`);
      await new Promise<void>((resolve) => {
        this.#changed = resolve;
      });
    }
  }
}

/** Numbers from a seed, the same every time: a linear congruential generator, whose high bits will do. */
export function* numbers(seed: number): Generator<number, never> {
  for (let state = seed >>> 0; ; ) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    yield state >>> 8;
  }
}

export type Reading = {
  readonly diverged: readonly Divergence[];
  readonly open: number;
  /** Of each dispatch that is decided or aborted: how, in the words of an acknowledgement. */
  readonly concluded: ReadonlyMap<string, Pick<Acknowledged, "status" | "decision" | "payload">>;
  /** Ids of those that are allowed: decided so, and not taken back. */
  readonly allowed: readonly string[];
};

/** What a ledger says, told from its events alone. */
export async function readingOf(store: EventStore): Promise<Reading> {
  const diverged: Divergence[] = [];
  let open = 0;
  for await (const part of verifyAll(store, undefined, 1)) {
    open += part.open;
    diverged.push(...part.diverged);
  }
  const concluded = new Map<string, Pick<Acknowledged, "status" | "decision" | "payload">>();
  const allowed: string[] = [];
  for (const { stream, events } of await collect(store.readStreams({ order: "oldest" }))) {
    const id = stream.slice("hookdispatch-".length);
    for (const { type, data } of events) {
      const decoded = decodeEvent(type, data);
      if (!("event" in decoded)) throw new Error(decoded.found);
      const { event } = decoded;
      if (event.type === "decided") {
        concluded.set(id, { status: "decided", decision: event.decision, payload: event.payload });
        if (event.decision === "allow") allowed.push(id);
      } else if (event.type === "aborted") {
        concluded.set(id, { status: "aborted", decision: null, payload: null });
        if (allowed.at(-1) === id) allowed.pop();
      }
    }
  }
  return { diverged, open, concluded, allowed };
}
