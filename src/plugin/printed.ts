/** What the author's code prints, on its way to the host: over StreamStdio while that is open, else as lines of the log at `debug`. */

import { StringDecoder } from "node:string_decoder";
import { Metadata, type ServerWritableStream } from "@grpc/grpc-js";
import { encodeStdioData } from "../goplugin/messages.js";
import type { Logger } from "../subscribers/log.js";

export type StdioCall = ServerWritableStream<Buffer, Uint8Array>;

/** bytes that wait for a host that reads slowly; what is printed beyond them is dropped, and counted */
const MAX_WAITING = 1024 * 1024;
/** bytes of one message */
const MAX_PIECE = 32 * 1024;
/** UTF-16 units of a line that has no end yet */
const MAX_LINE = 8 * 1024;

export class Printed {
  readonly #log: Logger;
  #call: StdioCall | undefined;
  #waiting = 0;
  #dropped = 0;
  #decoder = new StringDecoder("utf8");
  #line = "";

  constructor(log: Logger) {
    this.#log = log;
  }

  /** Never blocks and never throws. */
  take(bytes: Uint8Array): void {
    const call = this.#call;
    if (call === undefined) {
      this.#toLog(bytes);
      return;
    }
    for (let start = 0; start < bytes.length; start += MAX_PIECE) {
      this.#send(call, bytes.subarray(start, start + MAX_PIECE));
    }
  }

  /** Serves StreamStdio. The newest stream is the one that gets it all. */
  stream(call: StdioCall): void {
    this.flush();
    this.#call?.end();
    this.#call = call;
    this.#waiting = 0;
    call.once("cancelled", () => this.#lost(call));
    // Leading metadata tell the host that the stream is there, however long nothing is printed.
    call.sendMetadata(new Metadata());
  }

  /** Ends the stream, and what is left of a line. */
  end(): void {
    this.#call?.end();
    this.#call = undefined;
    this.flush();
  }

  flush(): void {
    const rest = this.#line + this.#decoder.end();
    this.#line = "";
    if (rest !== "") this.#log.debug(rest);
  }

  #send(call: StdioCall, data: Uint8Array): void {
    if (this.#waiting + data.length > MAX_WAITING) {
      this.#dropped += data.length;
      return;
    }
    this.#waiting += data.length;
    call.write(encodeStdioData({ channel: "stdout", data }), () => {
      if (call === this.#call) this.#waiting -= data.length;
      this.#tellDropped();
    });
  }

  #tellDropped(): void {
    if (this.#dropped === 0 || this.#waiting > 0) return;
    this.#log.warn(`${this.#dropped} bytes that were printed are lost: the host read them too slowly`);
    this.#dropped = 0;
  }

  #lost(call: StdioCall): void {
    if (call === this.#call) this.#call = undefined;
  }

  #toLog(bytes: Uint8Array): void {
    const lines = (this.#line + this.#decoder.write(Buffer.from(bytes))).split("\n");
    this.#line = lines.pop() ?? "";
    for (const line of lines) this.#log.debug(line);
    if (this.#line.length <= MAX_LINE) return;
    this.#log.debug(this.#line);
    this.#line = "";
  }
}
