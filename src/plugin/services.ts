/** The services beside DispatchHook that a go-plugin host asks of a plugin. */

import type { Server, ServerDuplexStream, ServerUnaryCall, ServerWritableStream, sendUnaryData } from "@grpc/grpc-js";
import { status as Status } from "@grpc/grpc-js";
import { decodeHealthRequest, EMPTY, encodeHealthResponse, SERVING_STATUS } from "../goplugin/messages.js";
import { HEALTH_SERVICE, METHODS } from "../goplugin/protocol.js";
import type { HookService } from "./dispatch-hook.js";
import type { Printed } from "./printed.js";

type UnaryCall = ServerUnaryCall<Buffer, Uint8Array>;
type Reply = sendUnaryData<Uint8Array>;
type WatchCall = ServerWritableStream<Buffer, Uint8Array>;
type BrokerCall = ServerDuplexStream<Buffer, Uint8Array>;

export type ServiceParts = {
  readonly hooks: HookService;
  readonly printed: Printed;
  /** A DescribeResponse. */
  readonly description: Uint8Array;
  /** The host asks for the end; its answer is on its way. */
  readonly shutdown: () => void;
};

/** Streams that stay open until a host or `end` ends them. */
export class Services {
  readonly #parts: ServiceParts;
  readonly #open = new Set<WatchCall | BrokerCall>();

  constructor(parts: ServiceParts) {
    this.#parts = parts;
  }

  register(server: Server): void {
    const { hooks, printed, description, shutdown } = this.#parts;
    const unary = (path: string, handler: (call: UnaryCall, reply: Reply) => void) =>
      server.register<Buffer, Uint8Array>(path, handler, toBuffer, asItIs, "unary");
    unary(METHODS.dispatchHook, hooks.dispatchHook);
    unary(METHODS.describe, (_call, reply) => reply(null, description));
    unary(METHODS.health, check);
    unary(METHODS.shutdown, (_call, reply) => {
      reply(null, EMPTY);
      setImmediate(shutdown);
    });
    server.register<Buffer, Uint8Array>(
      METHODS.stdio,
      (call: WatchCall) => printed.stream(call),
      toBuffer,
      asItIs,
      "serverStream",
    );
    server.register<Buffer, Uint8Array>(
      METHODS.healthWatch,
      (call: WatchCall) => this.#watch(call),
      toBuffer,
      asItIs,
      "serverStream",
    );
    server.register<Buffer, Uint8Array>(
      METHODS.broker,
      (call: BrokerCall) => this.#hold(call),
      toBuffer,
      asItIs,
      "bidi",
    );
  }

  end(): void {
    this.#parts.printed.end();
    for (const call of this.#open) call.end();
  }

  #watch(call: WatchCall): void {
    call.write(encodeHealthResponse(statusOf(decodeHealthRequest(call.request))));
    this.#keep(call);
  }

  /** Nothing is ever offered, and what a host offers is not needed. */
  #hold(call: BrokerCall): void {
    call.on("data", () => {});
    call.on("end", () => call.end());
    this.#keep(call);
  }

  #keep(call: WatchCall | BrokerCall): void {
    this.#open.add(call);
    call.once("cancelled", () => this.#open.delete(call));
  }
}

function check(call: UnaryCall, reply: Reply): void {
  const service = decodeHealthRequest(call.request);
  const status = statusOf(service);
  if (service === null) reply({ code: Status.INVALID_ARGUMENT, details: "the request cannot be read" });
  else if (status === SERVING_STATUS.serviceUnknown) reply({ code: Status.NOT_FOUND, details: "unknown service" });
  else reply(null, encodeHealthResponse(status));
}

/** The empty name is the server as a whole. */
function statusOf(service: string | null): number {
  return service === HEALTH_SERVICE || service === "" ? SERVING_STATUS.serving : SERVING_STATUS.serviceUnknown;
}

function asItIs(bytes: Buffer): Buffer {
  return bytes;
}

function toBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
