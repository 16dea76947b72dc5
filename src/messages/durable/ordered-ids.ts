import { randomBytes } from "node:crypto";
import { ulid } from "../../store/ulid.js";

/** Fresh ULIDs, each above the one before it, also within a millisecond and when the clock is set back. `wall`: ms since 1970. */
export function orderedIds(wall: () => number): () => string {
  let lastMs = 0;
  let count = 0;
  return () => {
    const ms = Math.floor(wall());
    count = ms > lastMs ? 0 : count + 1;
    lastMs = Math.max(ms, lastMs);
    const random = randomBytes(10);
    random.writeUInt32BE(count);
    return ulid(lastMs, random);
  };
}
