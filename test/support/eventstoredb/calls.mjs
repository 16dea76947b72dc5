// @ts-check
/** @import { CallInfo, Method } from "./types.js" */

/** What was received, by method and stream; one batch of a batch append counts as one call. */
export class Calls {
  /** @type {Map<Method, Map<string, number>>} */
  #counts = new Map();
  /** Events written, and their bytes as the log counts them. Repetitions write nothing. */
  eventsWritten = 0;
  bytesWritten = 0;
  /** Connections accepted so far. */
  connections = 0;

  /** @param {CallInfo} call */
  add({ method, stream }) {
    let streams = this.#counts.get(method);
    if (streams === undefined) {
      streams = new Map();
      this.#counts.set(method, streams);
    }
    streams.set(stream, (streams.get(stream) ?? 0) + 1);
  }

  /**
   * @param {Method} method
   * @param {string} [stream] undefined: any
   */
  count(method, stream) {
    const streams = this.#counts.get(method) ?? new Map();
    if (stream !== undefined) return streams.get(stream) ?? 0;
    let total = 0;
    for (const count of streams.values()) total += count;
    return total;
  }

  /** Names of the streams that a method was called for. @param {Method} method */
  streams(method) {
    return [...(this.#counts.get(method)?.keys() ?? [])];
  }

  reset() {
    this.#counts.clear();
    this.eventsWritten = 0;
    this.bytesWritten = 0;
  }
}
