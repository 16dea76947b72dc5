/** Limits that the host's own code sets: a slip is to be told when the host starts, and not to be waited out. */

/** ms; a timer that is set for longer fires at once. */
const LONGEST = 2 ** 31 - 1;

/** Throws a RangeError for one that is given and is not > 0 and at most 2 147 483 647 (ms). */
export function requireMs(limits: { readonly [name: string]: number | undefined }): void {
  for (const [name, ms] of Object.entries(limits)) {
    if (ms !== undefined && !(ms > 0 && ms <= LONGEST)) {
      throw new RangeError(`${name} is ${ms}: it must be > 0 and at most ${LONGEST}`);
    }
  }
}
