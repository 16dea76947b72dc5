/** `hookledger.v1.PluginInfo/Describe`: what a peer says of itself. Optional for peers; UNIMPLEMENTED means it does not say. */

import { Metadata, status as Status } from "@grpc/grpc-js";
import protobuf from "protobufjs/minimal.js";
import type { Provider } from "../config/types.js";
import { HOOK_POINTS, type HookPoint, isHookPoint } from "../core/points.js";
import { HookledgerError } from "../errors.js";
import type { Channel, Reply } from "./channel.js";

export type PeerDescription = {
  readonly name: string;
  readonly version: string;
  /** Lower-case short name of a category, or undefined where the peer names none that this build knows. */
  readonly category: string | undefined;
  /** Empty: the peer does not say. */
  readonly supportedHookPoints: readonly HookPoint[];
};

const DESCRIBE = "/hookledger.v1.PluginInfo/Describe";
const CATEGORIES = [undefined, "model", "tool", "context", "memory", "frontend", "widget", "slashcommand"] as const;
/** Value n of `HookPoint` is the n-th point. */
const POINTS = Object.keys(HOOK_POINTS).filter(isHookPoint);
const MAX_TEXT = 256;
const MAX_BYTES = 64 * 1024;

/**
 * Asks once. Null when the peer does not say; "absent" when nobody is there, or nobody who speaks gRPC, or no answer comes in
 * time. Throws HL_SUBSCRIBER_LOAD on nonsense.
 */
export async function describePeer(
  provider: Provider,
  channel: Channel,
  timeoutMs: number,
): Promise<PeerDescription | null | "absent"> {
  const reply = await channel.unary({
    path: DESCRIBE,
    request: new Uint8Array(0),
    metadata: new Metadata(),
    deadline: new Date(Date.now() + timeoutMs),
  });
  if (isAbsent(reply)) return "absent";
  if (reply.end !== "status" || reply.status.code !== Status.OK || reply.message === null) return null;
  const description = reply.message.byteLength > MAX_BYTES ? null : decode(reply.message);
  if (description === null) {
    throw new HookledgerError("HL_SUBSCRIBER_LOAD", `provider "${provider.name}": its PluginInfo cannot be read`, {
      place: provider.place,
    });
  }
  return description;
}

/** A peer that answers in gRPC is there, whatever it answers: what it sends begins with leading or ends with trailing metadata. */
function isAbsent(reply: Reply): boolean {
  if (reply.end !== "status") return reply.end === "foreign";
  const { code, metadata } = reply.status;
  return (
    code !== Status.OK &&
    code !== Status.UNIMPLEMENTED &&
    reply.headers === null &&
    Object.keys(metadata.getMap()).length === 0
  );
}

function decode(bytes: Uint8Array): PeerDescription | null {
  let name = "";
  let version = "";
  let category: string | undefined;
  const points = new Set<HookPoint>();
  try {
    const reader = protobuf.Reader.create(bytes);
    while (reader.pos < reader.len) {
      const tag = reader.uint32();
      switch (tag) {
        case 0x0a:
          name = reader.string();
          break;
        case 0x12:
          version = reader.string();
          break;
        case 0x18:
          category = CATEGORIES[reader.uint32()];
          break;
        case 0x20:
          addPoint(points, reader.uint32());
          break;
        case 0x22: {
          const end = reader.uint32() + reader.pos;
          while (reader.pos < end) addPoint(points, reader.uint32());
          break;
        }
        default:
          reader.skipType(tag & 7);
      }
    }
  } catch {
    return null;
  }
  return isText(name) && isText(version) ? { name, version, category, supportedHookPoints: [...points] } : null;
}

function addPoint(points: Set<HookPoint>, value: number): void {
  const point = POINTS[value - 1];
  if (point !== undefined) points.add(point);
}

/** Short, one line. */
function isText(text: string): boolean {
  return text.length <= MAX_TEXT && !/\p{Cc}/u.test(text);
}
