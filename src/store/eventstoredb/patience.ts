import { HookledgerError } from "../../errors.js";
import type { Time } from "./time.js";

/** ms between attempts. */
const PAUSES = [50, 200, 800];

/**
 * Makes an attempt that can be repeated without harm again, a few times, while the server does not take it or does not answer. The
 * first attempt is under way when this returns. Throws what the last attempt threw, but HL_STORE_UNAVAILABLE for HL_STORE_AMBIGUOUS:
 * nothing depends on whether it was carried out.
 */
export async function patiently<T>(time: Time, attempt: () => Promise<T>): Promise<T> {
  for (const ms of PAUSES) {
    try {
      return await attempt();
    } catch (error) {
      if (!isPassing(error)) throw error;
    }
    await time.pause(ms);
  }
  try {
    return await attempt();
  } catch (error) {
    if (!isAmbiguous(error)) throw error;
    throw new HookledgerError("HL_STORE_UNAVAILABLE", error.message, { cause: error });
  }
}

export function isConflict(error: unknown): boolean {
  return error instanceof HookledgerError && error.code === "HL_STORE_CONFLICT";
}

function isPassing(error: unknown): boolean {
  return (error instanceof HookledgerError && error.code === "HL_STORE_UNAVAILABLE") || isAmbiguous(error);
}

function isAmbiguous(error: unknown): error is HookledgerError {
  return error instanceof HookledgerError && error.code === "HL_STORE_AMBIGUOUS";
}
