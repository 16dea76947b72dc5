/** A plugin that has started: called, and ended when it is no longer needed. */

import { Metadata, status as Status } from "@grpc/grpc-js";
import { EMPTY } from "../../goplugin/messages.js";
import { METHODS } from "../../goplugin/protocol.js";
import { quoted } from "../../goplugin/quote.js";
import type { Answer } from "../../payload/answer.js";
import type { Channel, Reply } from "../channel.js";
import { crashed } from "../fault.js";
import type { GrpcSubscriber } from "../grpc.js";
import type { PeerDescription } from "../plugin-info.js";
import type { Invocation } from "../port.js";
import { unhealthy } from "./health.js";
import type { PluginLife } from "./life.js";
import type { PluginLog } from "./plugin-log.js";
import type { PluginProcess } from "./process.js";
import { type StopOptions, stopProcess } from "./stop.js";

export type RunningParts = {
  readonly process: PluginProcess;
  readonly log: PluginLog;
  readonly channel: Channel;
  /** On that channel. */
  readonly subscriber: GrpcSubscriber;
  readonly stdio: { close(): void };
  readonly stop: StopOptions;
};

/** ms in which an answer that was sent before the end is still read */
const ANSWER_MS = 50;
/** ms after a broken connection in which the end of the process is known, if that is what broke it */
const END_MS = 250;

/** Calls in a row without an answer after which it is asked whether it is there at all. */
const SILENT_CALLS = 3;
/** ms for each step of the end of one that left its last call unanswered: whoever waits for it has waited already */
const SILENT_GRACE_MS = 500;
/** ms that it has to say so */
const HEALTH_MS = 2_000;

/** Made by `startPlugin`. None of its parts keeps this process up; the watcher ends the plugin when this process has ended. */
export class RunningPlugin implements PluginLife {
  readonly ended: Promise<string>;
  readonly #parts: RunningParts;
  readonly #inFlight = new Set<() => void>();
  /** Calls whose connection broke for a reason that is not known yet. */
  readonly #broken = new Set<() => void>();
  readonly #over: Promise<void>;
  /** Calls in a row whose deadline came first. */
  #silent = 0;
  #asking = false;
  #closing: Promise<void> | null = null;

  constructor(parts: RunningParts) {
    this.#parts = parts;
    this.ended = parts.process.ended;
    this.#over = this.ended.then((how) => this.#bury(how));
    parts.process.hold(false);
  }

  get pid(): number {
    return this.#parts.process.pid;
  }

  get end(): string | null {
    return this.#parts.process.end;
  }

  invoke(call: Invocation): Promise<Answer> {
    if (this.end !== null) return Promise.resolve(this.#crash());
    return new Promise((resolve) => {
      const crash = () => resolve(this.#crash());
      this.#inFlight.add(crash);
      void this.#parts.subscriber.invoke(call).then((answer) => {
        this.#inFlight.delete(crash);
        this.#heard(call, answer);
        if (!isCrash(answer)) resolve(answer);
        else if (this.end !== null) crash();
        else this.#awaitEnd(crash, () => resolve(answer));
      });
    });
  }

  describe(timeoutMs: number): Promise<PeerDescription | null | "absent"> {
    return this.#parts.subscriber.describe(timeoutMs);
  }

  exchange(request: Uint8Array, timeoutMs: number): Promise<Reply> {
    return this.#parts.subscriber.exchange(request, timeoutMs);
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    const { process, stop } = this.#parts;
    const graceMs = this.#silent === 0 ? stop.graceMs : Math.min(stop.graceMs, SILENT_GRACE_MS);
    await stopProcess(process, () => this.#shutDown(graceMs), { ...stop, graceMs });
    if (process.end !== null) await this.#over;
    this.#disconnect();
  }

  /** One that hangs, or has been stopped, is replaced: whoever is merely slow still answers its health check. */
  #heard({ remainingMs }: Invocation, answer: Answer): void {
    if (answer.class !== "failed") this.#silent = 0;
    else if (remainingMs() <= 0 && ++this.#silent >= SILENT_CALLS && !this.#asking) void this.#ask();
  }

  async #ask(): Promise<void> {
    const { process, channel, log } = this.#parts;
    this.#asking = true;
    const fault = await unhealthy(channel, HEALTH_MS, quoted);
    this.#asking = false;
    if (fault === null || this.end !== null || this.#closing !== null) {
      this.#silent = 0;
      return;
    }
    log.warn(`the plugin answers neither its calls nor its health check, and is killed: ${fault}`);
    await process.kill();
  }

  /** A plugin that goes at once has no time to answer. */
  async #shutDown(graceMs: number): Promise<boolean> {
    const { channel } = this.#parts;
    const reply = await channel.unary({
      path: METHODS.shutdown,
      request: EMPTY,
      metadata: new Metadata(),
      deadline: new Date(Date.now() + graceMs),
    });
    return reply.end === "status" && (reply.status.code === Status.OK || reply.status.code === Status.UNAVAILABLE);
  }

  #awaitEnd(crash: () => void, giveUp: () => void): void {
    const cancel = this.#parts.stop.clock.timer(
      END_MS,
      () => {
        this.#broken.delete(ended);
        giveUp();
      },
      "background",
    );
    const ended = () => {
      cancel();
      crash();
    };
    this.#broken.add(ended);
  }

  async #bury(how: string): Promise<void> {
    const { process, log, stop } = this.#parts;
    const asked = this.#closing !== null;
    for (const crash of this.#broken) crash();
    this.#broken.clear();
    stop.clock.timer(this.#inFlight.size === 0 ? 0 : ANSWER_MS, () => {
      for (const crash of this.#inFlight) crash();
      this.#inFlight.clear();
      this.#disconnect();
    });
    await process.drained;
    if (!asked && how !== "exited with code 0") log.explain(how);
    log.end();
    await process.gone;
  }

  #disconnect(): void {
    this.#parts.stdio.close();
    this.#parts.channel.close();
  }

  #crash(): Answer {
    return crashed(`the plugin ${this.end ?? "is gone"}`);
  }
}

function isCrash(answer: Answer): boolean {
  return answer.class === "failed" && answer.error.category === "PROCESS_CRASHED";
}
