/** Work that nobody waits for any more once the turn is aborted. */

/** Rejects as `work` does, unless the signal was aborted before; what comes of it then is nobody's. */
export async function unlessAborted<T>(work: T | PromiseLike<T>, signal: AbortSignal): Promise<T | "aborted"> {
  const working = Promise.resolve(work);
  let abort = (): void => {};
  const aborted = new Promise<"aborted">((resolve) => {
    abort = () => resolve("aborted");
    if (signal.aborted) abort();
    else signal.addEventListener("abort", abort, { once: true });
  });
  try {
    return await Promise.race([aborted, working]);
  } finally {
    signal.removeEventListener("abort", abort);
  }
}
