/** What one read of the server's yields, as far as it is what was asked for. */
import type { Readable } from "node:stream";
import type * as esdb from "@eventstore/db-client";
import { HookledgerError } from "../../errors.js";
import { Overdue } from "./failure.js";
import type { ServerEvent } from "./server-log.js";

/** May the event come behind the one before? */
export type Fits = (event: ServerEvent, before: ServerEvent | undefined) => boolean;

/** Items of a read are turned into events, and judged, one by one. */
export type Asked<T> = {
  readonly cancel: () => void;
  /** ms in which the read has to end. */
  readonly ms: number;
  /** Events at most. */
  readonly max: number;
  readonly pick: (item: T) => esdb.ResolvedEvent | undefined;
  readonly fits: Fits;
  /** Is it enough, though there may be more? Asked after each event. */
  readonly isEnough?: (event: ServerEvent) => boolean;
};

/** Rejects with what the read fails with, Overdue, or HL_STORE_CORRUPT for what was not asked for: then the server cannot be believed. */
export function gather<T>(read: Readable, asked: Asked<T>): Promise<readonly ServerEvent[]> {
  const { cancel, ms, max, pick, fits, isEnough = () => false } = asked;
  return new Promise((resolve, reject) => {
    const events: ServerEvent[] = [];
    let ended = false;
    const timer = setTimeout(() => fail(new Overdue()), ms);
    function end(): void {
      ended = true;
      clearTimeout(timer);
    }
    function fail(error: unknown): void {
      end();
      reject(error);
      cancel();
    }
    function take(item: T): void {
      const resolved = pick(item);
      const event = resolved === undefined ? null : toServerEvent(resolved);
      if (event === null) return;
      if (events.length === max || !fits(event, events.at(-1))) throw nonsense(event);
      events.push(event);
      if (!isEnough(event)) return;
      end();
      resolve(events);
      cancel();
    }
    read.on("data", (item: T) => {
      if (ended) return;
      try {
        take(item);
      } catch (error) {
        fail(error);
      }
    });
    // Stays: what a read that was given up reports late is nobody's concern.
    read.on("error", fail);
    read.on("end", () => {
      end();
      resolve(events);
    });
  });
}

function nonsense({ stream, revision }: ServerEvent): HookledgerError {
  const event = `event ${revision} of ${JSON.stringify(stream.slice(0, 80))}`;
  return new HookledgerError("HL_STORE_CORRUPT", `the server answers a read with ${event}, which was not asked for`);
}

/** null for a link whose target is gone. Throws HL_STORE_CORRUPT for a place that no number holds, or none: such an event would be lost. */
export function toServerEvent({ event }: esdb.ResolvedEvent): ServerEvent | null {
  if (event === undefined) return null;
  const position = Number(event.position?.commit ?? 0n);
  const revision = Number(event.revision);
  const name = JSON.stringify(event.streamId.slice(0, 80));
  if (!Number.isSafeInteger(position) || !Number.isSafeInteger(revision)) {
    throw new HookledgerError("HL_STORE_CORRUPT", `${name} has an event at a place beyond 2^53`);
  }
  if (position <= 0) {
    throw new HookledgerError("HL_STORE_CORRUPT", `the server does not say where event ${revision} of ${name} is`);
  }
  return {
    stream: event.streamId,
    revision,
    position,
    id: event.id,
    type: event.type,
    content: event.isJson
      ? { kind: "json", data: event.data, metadata: event.metadata }
      : { kind: "bytes", data: event.data },
  };
}
