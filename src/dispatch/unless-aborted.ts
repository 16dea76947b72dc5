/** Work that nobody waits for any more once its caller has given up. */

/** As `work` settles, where it has not been waited for in vain until the abort; what comes of it then is nobody's. */
export async function unlessAborted<T>(
  work: T | PromiseLike<T>,
  signal: AbortSignal | undefined,
): Promise<T | "aborted"> {
  const working = Promise.resolve(work);
  if (signal === undefined) return working;
  let abort = (): void => {};
  const aborted = new Promise<"aborted">((resolve) => {
    abort = () => resolve("aborted");
    if (signal.aborted) abort();
    else signal.addEventListener("abort", abort, { once: true });
  });
  try {
    return await Promise.race([working, aborted]);
  } finally {
    signal.removeEventListener("abort", abort);
  }
}
