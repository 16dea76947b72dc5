/** Codecs of the few small messages that a host and a plugin exchange beside hooks. What cannot be decoded is null. */

import protobuf from "protobufjs/minimal.js";

const { Reader, Writer } = protobuf;
type Reader = protobuf.Reader;

/** `grpc.health.v1.HealthCheckResponse.ServingStatus`. */
export const SERVING_STATUS = { unknown: 0, serving: 1, notServing: 2, serviceUnknown: 3 } as const;

export type StdioData = { readonly channel: "stdout" | "stderr"; readonly data: Uint8Array };

/** Every message without fields, and every one that has only defaults. */
export const EMPTY: Uint8Array = new Uint8Array(0);

export function encodeHealthRequest(service: string): Uint8Array {
  return Writer.create().uint32(0x0a).string(service).finish();
}

/** The service that is asked for, empty for the server as a whole. */
export function decodeHealthRequest(bytes: Uint8Array): string | null {
  let service = "";
  const read = readFields(bytes, (tag, reader) => {
    if (tag !== 0x0a) return false;
    service = reader.string();
    return true;
  });
  return read ? service : null;
}

export function encodeHealthResponse(status: number): Uint8Array {
  return Writer.create().uint32(0x08).int32(status).finish();
}

/** One of SERVING_STATUS, or a number that this build does not know. */
export function decodeHealthResponse(bytes: Uint8Array): number | null {
  let status: number = SERVING_STATUS.unknown;
  const read = readFields(bytes, (tag, reader) => {
    if (tag !== 0x08) return false;
    status = reader.int32();
    return true;
  });
  return read ? status : null;
}

export function encodeStdioData({ channel, data }: StdioData): Uint8Array {
  const number = channel === "stdout" ? STDOUT : STDERR;
  return Writer.create().uint32(0x08).int32(number).uint32(0x12).bytes(data).finish();
}

const STDOUT = 1;
const STDERR = 2;

/** Null also for a channel that is neither of the two. */
export function decodeStdioData(bytes: Uint8Array): StdioData | null {
  let number = 0;
  let data = EMPTY;
  const read = readFields(bytes, (tag, reader) => {
    if (tag === 0x08) number = reader.int32();
    else if (tag === 0x12) data = reader.bytes();
    else return false;
    return true;
  });
  if (!read || (number !== STDOUT && number !== STDERR)) return null;
  return { channel: number === STDOUT ? "stdout" : "stderr", data };
}

/** Hands each field to `take`, and passes over those that it does not take. */
function readFields(bytes: Uint8Array, take: (tag: number, reader: Reader) => boolean): boolean {
  try {
    const reader = Reader.create(bytes);
    while (reader.pos < reader.len) {
      const tag = reader.uint32();
      if (!take(tag, reader)) reader.skipType(tag & 7);
    }
    return true;
  } catch {
    return false;
  }
}
