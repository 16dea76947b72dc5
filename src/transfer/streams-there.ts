import type { EventStore, StreamEvents, StreamName } from "../store/port.js";

/** Heads that are read at most to learn which of a page's streams are there. */
const MAX_HEADS = 2048;

/** Of the streams of a page: those that the store may have. One look at its heads, where the names lie close enough together. */
export async function streamsThere(store: EventStore, page: readonly StreamEvents[]): Promise<ReadonlySet<StreamName>> {
  const names = page.map(({ stream }) => stream).sort();
  const [first, last] = [names[0], names.at(-1)];
  if (first === undefined || last === undefined) return new Set();
  const there = new Set<StreamName>();
  let read = 0;
  for await (const heads of store.list({ order: "oldest", after: before(first) })) {
    for (const { stream } of heads) there.add(stream);
    read += heads.length;
    if ((heads.at(-1)?.stream ?? "") >= last) break;
    if (read > MAX_HEADS) return new Set(names);
  }
  return there;
}

/** A name that comes before this one, and behind almost all that do. */
function before(name: StreamName): StreamName {
  return `hookdispatch-${name.slice("hookdispatch-".length, -1)}`;
}
