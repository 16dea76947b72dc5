/** A place, in one shape whatever the channel calls things. */

import type { Location } from "../facts.js";
import { known } from "./known.js";

const SOURCES: ReadonlySet<unknown> = new Set(["pin", "place", "live"]);

/** The known fields, of their types. Absent where the coordinates are none of this earth. */
export function locationOf(given: Location | undefined): Location | undefined {
  if (given === undefined || !isWithin(given.latitude, 90) || !isWithin(given.longitude, 180)) return undefined;
  const { latitude, longitude, accuracy, name, address, caption, source, isLive, livePeriodSeconds } = given;
  return {
    latitude,
    longitude,
    ...known({
      accuracy: magnitude(accuracy),
      name: text(name),
      address: text(address),
      caption: text(caption),
      source: SOURCES.has(source) ? source : undefined,
      isLive: typeof isLive === "boolean" ? isLive : undefined,
      livePeriodSeconds: magnitude(livePeriodSeconds),
    }),
  };
}

function isWithin(degrees: number, bound: number): boolean {
  return Number.isFinite(degrees) && Math.abs(degrees) <= bound;
}

function magnitude(value: number | undefined): number | undefined {
  return Number.isFinite(value) && value !== undefined && value >= 0 ? value : undefined;
}

function text(value: string | undefined): string | undefined {
  return typeof value === "string" ? value : undefined;
}
