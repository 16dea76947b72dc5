/** One plugin over all its lives: started when it is due, judged by what it says of itself, started again after a crash. */

import type { Producer } from "../../core/events.js";
import { HookledgerError } from "../../errors.js";
import { crashed, failed, thrownText } from "../fault.js";
import type { NeededHook } from "../handler-table.js";
import { checkPeer, toldBy, uncheckedVersion } from "../peer-checks.js";
import type { Reach, Startable, SubscriberTransport } from "../port.js";
import type { KnownProducer } from "./environment.js";
import { FileDigest } from "./file-digest.js";
import type { PluginLife, PluginSpec } from "./life.js";
import { type RestartPolicy, Restarts } from "./restart.js";
import { startPlugin } from "./start.js";

export type SupervisorParts = {
  readonly spec: PluginSpec;
  /** The spec's, once more is known of the plugin than its name. */
  readonly environmentOf: (known: KnownProducer) => PluginSpec["environment"];
  readonly needed: readonly NeededHook[];
  readonly restart: RestartPolicy;
  /** Monotonic ms. */
  readonly now: () => number;
  /** ms that it has to describe itself */
  readonly describeTimeoutMs: number;
};

export class PluginSupervisor implements Startable {
  readonly #parts: SupervisorParts;
  readonly #digest: FileDigest;
  readonly #restarts: Restarts;
  readonly #giveUp = new AbortController();
  readonly #lives = new Set<PluginLife>();
  #now: Reach;
  #up = false;
  #failing = false;
  /** What it said of itself last. */
  #known: KnownProducer | null = null;
  #fault: HookledgerError | null = null;
  #warning: string | null = null;
  #starting: Promise<Reach> | null = null;

  constructor(parts: SupervisorParts) {
    this.#parts = parts;
    this.#digest = new FileDigest(parts.spec.path);
    this.#restarts = new Restarts(parts.restart);
    this.#now = this.#reach(new Down("it is not started"), this.#producer);
  }

  get now(): Reach {
    return this.#now;
  }

  get due(): boolean {
    if (this.#up || this.#giveUp.signal.aborted) return false;
    return this.#starting !== null || this.#restarts.at(this.#parts.now()).may === "start";
  }

  get failing(): boolean {
    return this.#failing;
  }

  /** Why it does not run: HL_PLUGIN_START, it did not come up; HL_SUBSCRIBER_LOAD, it is not what is asked for. Null while it runs. */
  get fault(): HookledgerError | null {
    return this.#fault;
  }

  /** What there was to say of its last start, for a person. */
  get warning(): string | null {
    return this.#warning;
  }

  async ready(): Promise<Reach> {
    if (!this.due) return this.#now;
    this.#starting ??= this.#start((why) => this.#say(why));
    return this.#starting;
  }

  /** Starts it also where it had been given up or has to wait. Never rejects, and logs no fault: `fault` is the caller's to tell. */
  async startNow(): Promise<void> {
    if (this.#starting === null && !this.#up) this.#restarts.forget();
    if (!this.due) return;
    this.#starting ??= this.#start(() => {});
    await this.#starting;
  }

  /** Ends it, and whatever start is under way. Idempotent. */
  async close(): Promise<void> {
    this.#giveUp.abort();
    await this.#starting;
    await Promise.all([...this.#lives].map((life) => life.close()));
  }

  async #start(tell: (why: string) => void): Promise<Reach> {
    const { now } = this.#parts;
    try {
      const { life, producer } = await this.#open();
      this.#fault = null;
      this.#up = true;
      this.#failing = false;
      this.#now = this.#reach(life, producer);
      const since = now();
      void life.ended.then((how) => this.#ended(life, how, producer, now() - since));
    } catch (error) {
      this.#failing = true;
      this.#restarts.didNotStart(now());
      const unfit = error instanceof HookledgerError;
      const why = unfit ? error.message : error instanceof NotUp ? error.message : thrownText(error);
      this.#fault = unfit ? error : this.#unstarted(why);
      if (!this.#giveUp.signal.aborted) tell(unfit ? why : `it was not started: ${why}`);
      this.#now = this.#reach(unfit ? new Unfit(why) : new Down(this.#standing(why)), this.#producer);
    }
    this.#starting = null;
    return this.#now;
  }

  /** Throws NotUp and HL_SUBSCRIBER_LOAD; nothing runs then. */
  async #open(): Promise<{ readonly life: PluginLife; readonly producer: Producer }> {
    const { spec, environmentOf } = this.#parts;
    const environment = this.#known === null ? spec.environment : environmentOf(this.#known);
    const digesting = this.#digest.now();
    digesting.catch(() => {});
    const started = await startPlugin({ ...spec, environment }, { signal: this.#giveUp.signal });
    if (!started.ok) throw new NotUp(started.message);
    const { life } = started;
    this.#lives.add(life);
    try {
      const digest = await digesting;
      // The file that was read is the one that was started only if it was the same before and after.
      if (!(await this.#digest.holds())) throw new NotUp("its file was changed while it was being started");
      return { life, producer: await this.#described(life, { ...this.#producer, digest }) };
    } catch (error) {
      await life.close();
      this.#lives.delete(life);
      throw error;
    }
  }

  async #described(life: PluginLife, producer: Producer): Promise<Producer> {
    const { spec, needed, describeTimeoutMs } = this.#parts;
    const description = await life.describe(describeTimeoutMs);
    if (description === "absent") {
      throw new NotUp(life.end === null ? "it did not describe itself in time" : `it ${life.end}`);
    }
    this.#warning = description === null ? uncheckedVersion(spec.provider) : null;
    if (description === null) return producer;
    checkPeer(spec.provider, needed, description);
    const told = toldBy(description, producer);
    this.#known = told;
    return told;
  }

  #ended(life: PluginLife, how: string, producer: Producer, ranMs: number): void {
    void life.close().then(() => this.#lives.delete(life));
    this.#up = false;
    if (this.#giveUp.signal.aborted) return;
    this.#restarts.ended(this.#parts.now(), ranMs);
    this.#fault = this.#unstarted(`it ${how}`);
    this.#say(`the plugin ${how}`);
    this.#now = this.#reach(new Down(this.#standing(how)), producer);
  }

  /** `why`, and what comes of it. */
  #standing(why: string): string {
    const standing = this.#restarts.at(this.#parts.now());
    switch (standing.may) {
      case "start":
        return why;
      case "wait":
        return `${why}; started again after a wait`;
      case "not":
        return `${why}; given up after ${standing.failures} failures in a row`;
    }
  }

  #unstarted(message: string): HookledgerError {
    const { name, sourceText, place } = this.#parts.spec.provider;
    return new HookledgerError("HL_PLUGIN_START", `provider "${name}" (${sourceText}): ${message}`, { place });
  }

  get #producer(): Producer {
    const { provider } = this.#parts.spec;
    return { name: provider.name, source: provider.sourceText };
  }

  #reach(transport: SubscriberTransport, producer: Producer): Reach {
    return { transport, producer };
  }

  #say(message: string): void {
    const { log, provider } = this.#parts.spec;
    log({ level: "warn", provider: provider.name, message });
  }
}

/** It does not run; why, without its name. */
class NotUp extends Error {}

/** Nobody is there to answer. */
class Down implements SubscriberTransport {
  readonly #why: string;
  constructor(why: string) {
    this.#why = why;
  }
  async invoke() {
    return crashed(`the plugin is not running: ${this.#why}`);
  }
  async close(): Promise<void> {}
}

/** Somebody else than the one who was asked for. */
class Unfit implements SubscriberTransport {
  readonly #why: string;
  constructor(why: string) {
    this.#why = why;
  }
  async invoke({ mode }: Parameters<SubscriberTransport["invoke"]>[0]) {
    return failed(mode, this.#why);
  }
  async close(): Promise<void> {}
}
