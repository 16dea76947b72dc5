// @ts-check
/** @import { ServerWritableStream } from "@grpc/grpc-js" */
/** @import { ReadReq, ReadResp } from "@eventstore/db-client/generated/streams_pb.js" */

/** The answers of a call that streams them, at the pace of who reads them. */
export class Outlet {
  #call;
  /** @type {() => void} */
  #wake = () => {};
  /** @type {() => void} */
  #closing = () => {};
  closed = false;
  /** Waits for the reader. */
  blocked = false;

  /** @param {ServerWritableStream<ReadReq, ReadResp>} call */
  constructor(call) {
    this.#call = call;
    const close = () => this.#close();
    call.on("error", close);
    call.on("cancelled", close);
    call.on("close", close);
    call.on("drain", () => this.#wake());
  }

  /**
   * null: there is room for the next one. Otherwise resolves when there is, or nobody to read it.
   * @param {ReadResp} message
   * @returns {Promise<void> | null}
   */
  send(message) {
    if (this.closed || this.#call.write(message)) return null;
    this.blocked = true;
    return new Promise((resolve) => {
      this.#wake = () => {
        this.blocked = false;
        resolve();
      };
    });
  }

  end() {
    if (!this.closed) this.#call.end();
  }

  /** @param {import("./statuses.mjs").CallError} error */
  fail(error) {
    if (this.closed) return;
    this.#close();
    this.#call.emit("error", error);
  }

  /** @param {() => void} listener */
  onClose(listener) {
    this.#closing = listener;
  }

  #close() {
    this.closed = true;
    this.#wake();
    this.#closing();
  }
}
