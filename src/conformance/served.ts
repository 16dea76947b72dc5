/** Where a subscriber stands. */

import { status as Status } from "@grpc/grpc-js";
import type { HookMode } from "../core/events.js";
import { HOOK_POINTS, type HookPoint, isHookPoint } from "../core/points.js";
import { encodeDispatchRequest } from "../payload/admission.js";
import type { Stand } from "./ask.js";
import { type BenchParts, benchFor } from "./bench.js";
import { EVERY_MODE } from "./check.js";

/** Every point with every mode that may stand there. */
export function everyStand(): readonly Stand[] {
  return pointsOf().flatMap((point) =>
    EVERY_MODE.filter((mode) => mayStand(point, mode)).map((mode) => ({ point, mode })),
  );
}

export function pointsOf(): readonly HookPoint[] {
  return Object.keys(HOOK_POINTS).filter(isHookPoint);
}

export function mayStand(point: HookPoint, mode: HookMode): boolean {
  return mode !== "veto" || HOOK_POINTS[point].vetoBearing;
}

/** Those of `stands` that the subscriber serves: who answers UNIMPLEMENTED there does not. */
export async function servedOf(stands: readonly Stand[], parts: BenchParts): Promise<readonly Stand[]> {
  if (parts.subject.isExplicit) return stands;
  const serves = await Promise.all(stands.map((stand) => isServed(stand, parts)));
  return stands.filter((_, place) => serves[place]);
}

async function isServed(stand: Stand, parts: BenchParts): Promise<boolean> {
  const { subject, timeoutMs } = parts;
  if (subject.exchange === null) return true;
  const request = encodeDispatchRequest(benchFor(stand, parts).usual, stand.mode);
  const reply = await subject.exchange(request, timeoutMs);
  return reply.end !== "status" || reply.status.code !== Status.UNIMPLEMENTED;
}
