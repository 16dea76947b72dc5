/** `hookledger.v1.PluginInfo`: what the plugin says of itself. */

import protobuf from "protobufjs/minimal.js";
import { HOOK_POINTS } from "../core/points.js";
import type { CheckedOptions } from "./options.js";

/** Value n of `HookPoint` is the n-th point. */
const POINTS: readonly string[] = Object.keys(HOOK_POINTS);

/** A DescribeResponse. */
export function encodeDescription({ name, version, handlers }: CheckedOptions): Uint8Array {
  const out = protobuf.Writer.create().uint32(0x0a).string(name).uint32(0x12).string(version).uint32(0x22).fork();
  for (const point of new Set(handlers.map(({ point }) => point))) out.int32(POINTS.indexOf(point) + 1);
  return out.ldelim().finish();
}
