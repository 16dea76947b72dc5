/** Fetching remote attachments to where they can be read. What cannot be had keeps its place and has no path: no message is lost by it. */

import type { MediaFact } from "../facts.js";
import type { Attachments } from "./media.js";
import type { InboundMessage } from "./message.js";

export type StagedMedia = {
  /** Readable here. */
  readonly path: string;
  /** What `path` is relative to, if it is. */
  readonly workspaceDir?: string;
  /** Where it turned out to be another than the provider said. */
  readonly contentType?: string;
};

/**
 * Fetches attachments: one result for each, in their order, null for one that cannot be had. Who throws has fetched none.
 * `signal`: nobody waits any more once it is aborted.
 */
export type Stager = (
  original: readonly MediaFact[],
  signal: AbortSignal | undefined,
) => readonly (StagedMedia | null)[] | PromiseLike<readonly (StagedMedia | null)[]>;

type StagingOptions = {
  readonly stage: Stager;
  readonly signal?: AbortSignal | undefined;
  /** Told of what could not be staged. */
  readonly warn?: (text: unknown) => void;
};

/** The message with its attachments staged; the same one where nothing is to be fetched, or where the turn was aborted. Never rejects. */
export async function stageMedia(message: InboundMessage, options: StagingOptions): Promise<InboundMessage> {
  const { attachments } = message;
  if (attachments?.state !== "remote" || attachments.original.length === 0) return message;
  const results = await fetched(attachments.original, options);
  return results === "aborted" ? message : { ...message, attachments: staged(attachments.original, results) };
}

async function fetched(
  original: readonly MediaFact[],
  { stage, signal, warn = () => {} }: StagingOptions,
): Promise<readonly (StagedMedia | null)[] | "aborted"> {
  const fetching = (async () => stage(original, signal))();
  try {
    const results = await (signal === undefined ? fetching : Promise.race([fetching, aborted(signal, fetching)]));
    if (results === "aborted") return results;
    if (Array.isArray(results) && results.length === original.length) return results;
    warn(`no attachment is staged: ${original.length} were asked for, and the answer is not one for each`);
  } catch (error) {
    warn(error);
  }
  return original.map(() => null);
}

/** Resolves when the signal is aborted first. Leaves no listener behind once `work` has settled. */
function aborted(signal: AbortSignal, work: Promise<unknown>): Promise<"aborted"> {
  return new Promise((resolve) => {
    const abort = (): void => resolve("aborted");
    if (signal.aborted) abort();
    else signal.addEventListener("abort", abort, { once: true });
    const settled = (): void => signal.removeEventListener("abort", abort);
    work.then(settled, settled);
  });
}

function staged(original: readonly MediaFact[], results: readonly (StagedMedia | null)[]): Attachments {
  return { state: "staged", original, media: original.map((fact, at) => local(fact, results[at] ?? null)) };
}

/** Path and folder of the original are the provider's. */
function local({ path: _, workspaceDir: __, ...fact }: MediaFact, staged: StagedMedia | null): MediaFact {
  if (staged === null) return fact;
  const { path, workspaceDir, contentType } = staged;
  return {
    ...fact,
    path,
    ...(workspaceDir === undefined ? {} : { workspaceDir }),
    ...(contentType === undefined ? {} : { contentType }),
  };
}
