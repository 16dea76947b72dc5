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
  const replies = new Map<Stand, Served>();
  await Promise.all(stands.map(async (stand) => replies.set(stand, await probe(stand, parts))));
  // What breaks the connection at one stand says nothing of the others.
  for (const [stand, served] of replies) if (served === "broken") replies.set(stand, await probeAlone(stand, parts));
  return stands.filter((stand) => replies.get(stand) !== "no");
}

type Served = "yes" | "no" | "broken";

const TRIES = { count: 5, everyMs: 50 } as const;

async function probeAlone(stand: Stand, parts: BenchParts): Promise<Served> {
  for (let time = 0; time < TRIES.count; time++) {
    await new Promise((resolve) => setTimeout(resolve, TRIES.everyMs));
    const served = await probe(stand, parts);
    if (served !== "broken") return served;
  }
  return "broken";
}

async function probe(stand: Stand, parts: BenchParts): Promise<Served> {
  const { subject, timeoutMs } = parts;
  if (subject.exchange === null) return "yes";
  const request = encodeDispatchRequest(benchFor(stand, parts).usual, stand.mode);
  const reply = await subject.exchange(request, timeoutMs);
  if (reply.end !== "status") return "yes";
  const { code } = reply.status;
  if (code === Status.UNAVAILABLE) return "broken";
  return code === Status.UNIMPLEMENTED ? "no" : "yes";
}
