import { randomBytes } from "node:crypto";
import { ulid } from "../store/ulid.js";
import type { Clock } from "./clock.js";

/** Fresh ULIDs. Randomness is drawn for many of them at once: a draw costs more than the id. */
export function freshIds(clock: Clock): () => string {
  const idBytes = 10;
  let pool = new Uint8Array(0);
  return () => {
    if (pool.byteLength < idBytes) pool = randomBytes(100 * idBytes);
    const random = pool.subarray(0, idBytes);
    pool = pool.subarray(idBytes);
    return ulid(Math.floor(clock.wall()), random);
  };
}
