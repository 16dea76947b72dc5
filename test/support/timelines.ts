/** Dispatches as timelines. */
import { type Timeline, timelineOf } from "#src/replay/timeline.js";
import { legibleRecord } from "#src/replay/timeline-record.js";
import { readSources } from "#src/replay/timeline-sources.js";
import { openMemoryStore } from "#src/store/memory.js";
import type { EventStore, RecordedEvent, StreamName } from "#src/store/port.js";
import type { chain } from "./given.js";
import { at, record } from "./ledger.js";
import { messages, startedWith } from "./stories.js";

/** The timeline of a dispatch that is recorded for it; `change` alters what is read of the record. */
export async function tell(
  story: (store: EventStore) => Promise<StreamName>,
  change: (events: readonly RecordedEvent[]) => readonly RecordedEvent[] = (events) => events,
): Promise<Timeline> {
  const store = openMemoryStore();
  const stream = (await store.readStream(await story(store)))!;
  const read = legibleRecord({ ...stream, events: change(stream.events) });
  const timeline = timelineOf(read, await readSources(store, stream, read));
  if (timeline === null) throw new Error("nothing can be told");
  return timeline;
}

/** A dispatch at a veto-bearing point on one payload, told from its start on. */
export function story(
  subscribers: ReturnType<typeof chain>,
  ...happenings: Parameters<typeof record>[1]["happenings"]
) {
  const input = messages("one");
  const call = (atMs: number, index: number) =>
    at(atMs, { type: "subscriber-invoked", index, saw: input.ref.digest } as const);
  return {
    input,
    call,
    told: (...more: Parameters<typeof record>[1]["happenings"]) =>
      tell((store) =>
        record(store, {
          n: 9,
          kept: [input],
          happenings: [at(0, startedWith(9, subscribers, input)), ...happenings, ...more],
        }),
      ),
  };
}
