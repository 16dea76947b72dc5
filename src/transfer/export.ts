/** Copies dispatches of a ledger into a bundle. */
import type { BundleDescription, BundleSelection } from "../store/bundle/description.js";
import { BundleWriter } from "../store/bundle/writer.js";
import type { EventStore, StreamEvents, StreamName } from "../store/port.js";
import { blobReferences } from "../store/record/blob-references.js";
import { metadataOf } from "../store/record/metadata.js";
import { type Lacking, wholeBlob } from "./payloads.js";
import { type Refusal, refusal } from "./refusal.js";

/** Everything, or what all of the members that are there select. */
export type ExportSelection = {
  /** null: dispatches without one. */
  readonly session?: string | null;
  /** ms since 1970: begun then or later. */
  readonly since?: number;
  /** ms since 1970: begun before then. */
  readonly until?: number;
  /** These alone; those that are not there are passed over. */
  readonly streams?: readonly StreamName[];
};

export type ExportOptions = {
  readonly selection: ExportSelection;
  /** Wall clock, ms since 1970. */
  readonly now: number;
  /** Told after each page. */
  readonly onProgress?: (exported: ExportCounts) => void;
};

export type ExportCounts = {
  readonly added: number;
  /** The bundle had them, and more has happened since. */
  readonly grown: number;
  /** The bundle has them as they are. */
  readonly kept: number;
  readonly refused: readonly Refusal[];
};

/** `bundle`: what it says of itself now, `digest` among it. */
export type Exported = ExportCounts & { readonly bundle: BundleDescription };

/**
 * Writes the bundle at `path`, or adds to it what is new or has grown; one that was interrupted goes on. A dispatch that does not
 * verify is copied as it stands: it is evidence. Throws what `BundleWriter.open` and the store throw.
 */
export async function exportLedger(store: EventStore, path: string, options: ExportOptions): Promise<Exported> {
  const { selection, now, onProgress = () => {} } = options;
  const bundle = BundleWriter.open(path, {
    source: withoutCredentials(store.url),
    selection: written(selection),
    now,
  });
  try {
    const counts = { added: 0, grown: 0, kept: 0, refused: [] as Refusal[] };
    for await (const page of selected(store, selection)) {
      bundle.begin();
      for (const stream of page) {
        const put = bundle.put(stream);
        switch (put.kind) {
          case "added":
          case "grown":
            await putPayloads(store, bundle, stream, put.from);
            counts[put.kind]++;
            break;
          case "kept":
            counts.kept++;
            break;
          case "conflict":
            counts.refused.push(refusal(stream.stream, "HL_IMPORT_CONFLICT", "the bundle has it with other content"));
            break;
          case "unfit":
            counts.refused.push(refusal(stream.stream, "HL_BUNDLE", put.detail));
            break;
        }
      }
      bundle.commit();
      onProgress(counts);
    }
    return { ...counts, bundle: bundle.finish() };
  } finally {
    bundle.close();
  }
}

async function putPayloads(
  store: EventStore,
  bundle: BundleWriter,
  { events }: StreamEvents,
  from: number,
): Promise<void> {
  const lacking: Lacking = { missing: 0, damaged: 0 };
  for (const reference of blobReferences(events.slice(from), events)) {
    if (bundle.hasPayload(reference.digest)) continue;
    const blob = await wholeBlob(store, reference, lacking);
    if (blob !== null) bundle.putPayload(blob.digest, blob.bytes);
  }
  if (lacking.missing + lacking.damaged > 0) bundle.lacks(lacking);
}

async function* selected(store: EventStore, selection: ExportSelection): AsyncGenerator<readonly StreamEvents[]> {
  const { session, since, until, streams } = selection;
  const matches = (stream: StreamEvents) =>
    (session === undefined || sessionOf(stream) === session) && beganWithin(stream, since, until);
  if (streams !== undefined) {
    for (const name of streams) {
      const stream = await store.readStream(name);
      if (stream !== null && matches(stream)) yield [stream];
    }
    return;
  }
  const filter = { order: "oldest" as const, ...(session === undefined ? {} : { session }) };
  for await (const page of store.readStreams(filter)) yield page.filter(matches);
  for await (const page of store.readUnlisted()) yield page.filter(matches);
}

function sessionOf({ head, events }: StreamEvents): string | null {
  return head === null ? (metadataOf(events[0])?.session ?? null) : head.session;
}

/** What has no readable time is within no bounds. */
function beganWithin({ events }: StreamEvents, since: number | undefined, until: number | undefined): boolean {
  if (since === undefined && until === undefined) return true;
  const began = Date.parse(metadataOf(events[0])?.at ?? "");
  return began >= (since ?? Number.NEGATIVE_INFINITY) && began < (until ?? Number.POSITIVE_INFINITY);
}

function written({ session, since, until, streams }: ExportSelection): BundleSelection {
  return {
    ...(session === undefined ? {} : { session }),
    ...(since === undefined ? {} : { since: new Date(since).toISOString() }),
    ...(until === undefined ? {} : { until: new Date(until).toISOString() }),
    ...(streams === undefined ? {} : { dispatches: streams.map((name) => name.slice("hookdispatch-".length)).sort() }),
  };
}

/** Of a server's URL: neither who connects nor with which files. Where that cannot be told apart, the scheme alone. */
function withoutCredentials(url: string): string {
  const server = /^([a-z]+(?:\+[a-z]+)?:)\/\//.exec(url);
  if (server === null) return url;
  const hosts = /^(?:[^?@]*@)?([A-Za-z0-9.,:[\]_-]+)(?:[/?][^@]*)?$/.exec(url.slice(server[0].length))?.[1];
  return hosts === undefined ? `${server[1]}` : `${server[0]}${hosts}`;
}
