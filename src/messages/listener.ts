/** Listeners of the host's, which have no say: what one throws, or rejects with later, is told and goes no further. */

/** `failed` must not throw. */
export function tell<T>(
  listener: ((news: T) => void) | undefined,
  news: T,
  failed: (thrown: unknown) => void = () => {},
): void {
  if (listener === undefined) return;
  try {
    const answer: unknown = listener(news);
    if (typeof answer === "object" && answer !== null) Promise.resolve(answer).catch(failed);
  } catch (thrown) {
    failed(thrown);
  }
}
