/** The whole timeline as one JSON document. Times are ms since the start. */
import type { Timeline, TimelineLink } from "../replay/timeline.js";
import type { LegibleRecord } from "../replay/timeline-record.js";
import type { Divergence } from "../replay/verify.js";

export function timelineDocument(timeline: Timeline, diverged: Divergence | null) {
  const { verdict, withdrawn, links, versions, conclusion } = timeline;
  return {
    dispatchId: verdict.dispatchId,
    point: verdict.point,
    status: verdict.status,
    decision: verdict.decision,
    decidedBy: verdict.decidedBy,
    allowed: verdict.allowed,
    abortCause: verdict.abortCause,
    reason: verdict.reason,
    withdrawn: withdrawn === null ? null : { decision: withdrawn.decision, decidedBy: withdrawn.decidedBy },
    abortedBy: timeline.abortedBy === null ? null : (links[timeline.abortedBy]?.id ?? null),
    inFlight: timeline.inFlight.map((index) => links[index]?.id ?? null),
    hookErrors: verdict.hookErrors,
    planDecisions: verdict.planDecisions,
    session: timeline.session,
    turn: timeline.turn,
    startedAt: timeline.startedAt,
    concludedMs: ms(conclusion?.atNs ?? null),
    durationMs: ms(timeline.spanNs),
    events: timeline.events.recorded,
    verified: diverged === null && timeline.violation === null,
    violation: timeline.violation,
    diverged: divergenceOf(diverged),
    redacted: timeline.redacted,
    composition: timeline.composition,
    end: timeline.end,
    blocksOnFailure: timeline.blocksOnFailure,
    vetoBearing: timeline.vetoBearing,
    observe: timeline.observe,
    budgetMs: timeline.budgetMs,
    engineVersion: timeline.engineVersion,
    config: timeline.config,
    chain: links.map((link) => linkOf(link, timeline)),
    plan: timeline.plan,
    payloads: versions.map(({ number, role, ref, by, content }) => ({
      version: number,
      role,
      by: by === null ? null : (links[by]?.id ?? null),
      ...ref,
      status: content.kind,
      payload: content.kind === "found" ? content.json : null,
    })),
  };
}

/** Of a record whose start cannot be told. */
export function unreadableDocument({ dispatchId, recorded, failure }: LegibleRecord, diverged: Divergence | null) {
  return {
    dispatchId,
    status: "unreadable",
    events: recorded,
    verified: false,
    violation: failure,
    diverged: divergenceOf(diverged),
  };
}

function linkOf(link: TimelineLink, { versions }: Timeline) {
  const { called, settled, change } = link;
  return {
    index: link.index,
    subscriber: link.id,
    provider: link.provider,
    mode: link.mode,
    shadow: link.shadow,
    timeoutMs: link.timeoutMs,
    producer: link.producer,
    calledMs: ms(called?.atNs ?? null),
    settledMs: ms(settled?.atNs ?? null),
    tookMs: ms(link.tookNs),
    lagMs: link.lagMs,
    afterConclusion: settled?.afterConclusion ?? false,
    saw: called === null ? null : { version: called.saw, digest: versions[called.saw - 1]?.ref.digest ?? null },
    said: link.said,
    warnings: link.warnings,
    changed:
      change === null
        ? null
        : {
            from: change.from,
            to: change.to,
            changes: change.difference?.changes ?? null,
            more: change.difference?.more ?? 0,
          },
  };
}

function divergenceOf(diverged: Divergence | null) {
  if (diverged === null) return null;
  const { revision, kind, expected, found } = diverged;
  return { revision, kind, expected, found };
}

function ms(ns: number | null): number | null {
  return ns === null ? null : ns / 1e6;
}
