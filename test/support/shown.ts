/** Dispatches as `hookledger show` tells them. */
import { timelineText, unreadableText } from "#src/cli/show-text.js";
import { createStyle } from "#src/cli/style.js";
import { timelineOf } from "#src/replay/timeline.js";
import { legibleRecord } from "#src/replay/timeline-record.js";
import { readSources } from "#src/replay/timeline-sources.js";
import { Verifier } from "#src/replay/verify.js";
import { openMemoryStore } from "#src/store/memory.js";
import type { EventStore, StreamEvents, StreamName } from "#src/store/port.js";

export type Story = (store: EventStore) => Promise<StreamName>;
type View = { readonly width?: number; readonly verbose?: boolean; readonly colours?: boolean };

/** What `show` prints of a dispatch that is recorded for it; `change` alters what is read of the record. */
export async function shown(
  story: Story,
  { width = 100, verbose = false, colours = false }: View = {},
  change: (stream: StreamEvents) => StreamEvents = (stream) => stream,
): Promise<string> {
  const store = openMemoryStore();
  const stream = change((await store.readStream(await story(store)))!);
  const read = legibleRecord(stream);
  const timeline = timelineOf(read, await readSources(store, stream, read));
  const { diverged } = await new Verifier(store).verify(stream);
  const style = createStyle(colours);
  return timeline === null
    ? unreadableText(read, diverged, style)
    : timelineText(timeline, diverged, { style, width, verbose });
}
