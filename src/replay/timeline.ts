/**
 * A recorded dispatch as a person asks about it, months later: who was called, when, for how long, seeing what; what each said
 * and changed; who was not called and why; and what came of it. Pure: the payloads and the configuration are handed in.
 */
import type {
  AbortCause,
  Decided,
  Digest,
  HookError,
  Mode,
  Outcome,
  Producer,
  Ref,
  Subscriber,
} from "../core/events.js";
import { blocksOnFailure } from "../core/handlers.js";
import { type Verdict, verdictOf } from "../core/result.js";
import type { Begun } from "../core/state.js";
import type { FoldFailure } from "../store/record/fold.js";
import { cancelReasonRef } from "./cancel-reason.js";
import { refsOf } from "./payload-refs.js";
import { endOf, type RunEnd } from "./run-end.js";
import { changeBy, type DefinedField, definedFields, type LinkChange, type PayloadVersion } from "./timeline-change.js";
import { type PlanLine, planLines } from "./timeline-plan.js";
import { type LegibleEvent, type LegibleRecord, payloadRefs } from "./timeline-record.js";
import type { Sources } from "./timeline-sources.js";

export type Timeline = {
  readonly dispatchId: string;
  readonly point: string;
  readonly composition: string;
  readonly vetoBearing: boolean;
  readonly observe: "concurrent" | "sequential" | "detached";
  /** ms for the whole chain, or null. */
  readonly budgetMs: number | null;
  readonly session: string | null;
  readonly turn: string | null;
  /** ISO 8601, as the writer's clock had it. */
  readonly startedAt: string | null;
  readonly engineVersion: string | null;
  /** The recorded payloads, reasons and messages are redacted copies. */
  readonly redacted: boolean;
  /** A handler that fails suppresses the delivery. */
  readonly blocksOnFailure: boolean;
  readonly verdict: Verdict;
  /** What a run of handlers was decided to come to; null for a chain. */
  readonly end: RunEnd | null;
  /** A decision that stands in the record and was taken back by a later `aborted`. */
  readonly withdrawn: Decided | null;
  readonly conclusion: Moment | null;
  /** Index of the subscriber whose failure aborted the chain. */
  readonly abortedBy: number | null;
  /** Who had been called and had not answered when the chain was aborted. */
  readonly inFlight: readonly number[];
  /** In chain order. */
  readonly links: readonly TimelineLink[];
  /** Numbered from 1, the input. */
  readonly versions: readonly PayloadVersion[];
  /** What policy said of each plan item; empty without policy's answer. */
  readonly plan: readonly PlanLine[];
  readonly config: { readonly digest: Digest; readonly status: "found" | "missing" | "altered" | "unreadable" };
  /** ns from the start to the last moment that is told. */
  readonly spanNs: number;
  readonly events: { readonly told: number; readonly recorded: number };
  /** Why the rest of the record cannot be told. */
  readonly violation: FoldFailure | null;
};

/** `atNs`: since the start; null where the metadata cannot be read. */
type Moment = { readonly revision: number; readonly atNs: number | null };

export type TimelineLink = {
  readonly index: number;
  readonly id: string;
  readonly provider: string;
  readonly mode: Mode;
  readonly timeoutMs: number | null;
  readonly shadow: boolean;
  readonly producer: Producer;
  readonly called: (Moment & { readonly saw: number }) | null;
  readonly settled: (Moment & { readonly afterConclusion: boolean }) | null;
  /** From call to settlement; null where nobody measured it. */
  readonly tookNs: number | null;
  /** ms by which the deadline was noticed late. */
  readonly lagMs: number | null;
  readonly said: Said;
  readonly warnings: readonly string[];
  readonly change: LinkChange | null;
};

export type Said =
  | { readonly kind: "ack" | "allow" | "transformed" | "policy" | "claimed" | "declined" }
  | { readonly kind: "deny"; readonly reason: string | null }
  /** `defines`: by a handler of a rewrite; one of a waterfall brings another payload, or none. */
  | { readonly kind: "rewritten"; readonly defines: readonly DefinedField[] }
  | { readonly kind: "cancelled"; readonly reason: string | null; readonly defines: readonly DefinedField[] }
  | { readonly kind: "failed" | "invalid"; readonly error: HookError }
  /** `own`: its own timeout, and not what was left of the chain budget. */
  | { readonly kind: "timeout"; readonly budgetMs: number; readonly own: boolean }
  /** The process ended before the answer could be recorded. */
  | { readonly kind: "lost" }
  /** Called, and nothing is recorded; `until`: what ended the wait, or null while it may still answer. */
  | { readonly kind: "in-flight"; readonly until: AbortCause | null }
  | { readonly kind: "skipped"; readonly why: string }
  | { readonly kind: "not-called"; readonly because: NotCalled };

export type NotCalled =
  | { readonly kind: "pending" }
  | { readonly kind: "denied" | "claimed" | "cancelled" | "blocked"; readonly by: string }
  | { readonly kind: "aborted"; readonly cause: AbortCause; readonly by: string | null };

/** Null: not even the start can be told. */
export function timelineOf(record: LegibleRecord, sources: Sources): Timeline | null {
  if (record.begun === null) return null;
  const { state, started, events } = record.begun;
  const versions = versionsOf(events, sources);
  const story = new Story(state, events, versions);
  const first = events[0]?.metadata ?? null;
  const links = started.subscribers.map((subscriber) => story.link(subscriber));
  const input = versions[0]?.content;
  return {
    dispatchId: started.dispatchId,
    point: started.point,
    composition: started.composition,
    vetoBearing: started.vetoBearing,
    observe: started.observe,
    budgetMs: started.budgetMs,
    session: first?.session ?? null,
    turn: first?.turn ?? null,
    startedAt: first?.at ?? null,
    engineVersion: first?.engineVersion ?? null,
    redacted: started.flags.includes("redacted"),
    blocksOnFailure: blocksOnFailure(started),
    verdict: story.verdict(),
    end: story.end,
    withdrawn: story.withdrawn,
    conclusion: story.conclusion,
    abortedBy: state.kind === "aborted" ? (state.aborted.index ?? null) : null,
    inFlight: state.kind === "aborted" ? (state.aborted.inFlight ?? []) : [],
    links,
    versions,
    plan: planLines(state.items ?? [], input?.kind === "found" ? input.json : null, sources.config),
    config: { digest: started.configDigest, status: sources.config.kind },
    spanNs: events.reduce((span, { metadata }) => Math.max(span, metadata?.offsetNs ?? 0), 0),
    events: { told: state.revision, recorded: record.recorded },
    violation: record.failure,
  };
}

function versionsOf(events: readonly LegibleEvent[], sources: Sources): readonly PayloadVersion[] {
  const makers = new Map<Digest, number>();
  for (const { event } of events) {
    if (event.type !== "outcome") continue;
    for (const { ref } of refsOf(event)) if (!makers.has(ref.digest)) makers.set(ref.digest, event.index);
  }
  return payloadRefs(events).map(({ role, ref }, place) => ({
    number: place + 1,
    role,
    ref,
    by: place === 0 ? null : (makers.get(ref.digest) ?? null),
    content: sources.payloads.get(ref.digest) ?? { kind: "missing" },
  }));
}

/** The events by the subscriber that they speak of. */
class Story {
  readonly withdrawn: Decided | null;
  readonly conclusion: Moment | null;
  readonly end: RunEnd | null;
  readonly #decided: Decided | null;
  readonly #state: Begun;
  readonly #versions: ReadonlyMap<Digest, PayloadVersion>;
  readonly #calls = new Map<number, LegibleEvent & { readonly saw: Digest }>();
  readonly #settlements = new Map<number, LegibleEvent>();

  constructor(state: Begun, events: readonly LegibleEvent[], versions: readonly PayloadVersion[]) {
    this.#state = state;
    this.#versions = new Map(versions.map((version) => [version.ref.digest, version]));
    let concluding: LegibleEvent | null = null;
    let decided: Decided | null = null;
    for (const legible of events) {
      const { event } = legible;
      if (event.type === "subscriber-invoked") this.#calls.set(event.index, { ...legible, saw: event.saw });
      if (event.type === "outcome" || event.type === "timeout") this.#settlements.set(event.index, legible);
      if (event.type === "decided" || event.type === "aborted") concluding ??= legible;
      if (event.type === "decided") decided = event;
    }
    this.withdrawn = state.kind === "aborted" ? decided : null;
    this.conclusion = concluding === null ? null : momentOf(concluding);
    this.#decided = decided;
    this.end = decided === null ? null : endOf(state, decided);
  }

  /** With the reason of a cancelled rewrite, which is a payload: the last that was defined. */
  verdict(): Verdict {
    const verdict = verdictOf(this.#state);
    return { ...verdict, reason: verdict.reason ?? this.#text(cancelReasonRef(this.#state)) };
  }

  link(subscriber: Subscriber): TimelineLink {
    const { index, id, provider, mode, timeoutMs, producer, shadow = false } = subscriber;
    const call = this.#calls.get(index);
    const settlement = this.#settlements.get(index);
    const said = this.#said(subscriber, settlement);
    const warnings = settlement?.event.type === "outcome" ? (settlement.event.warnings ?? []) : [];
    const called = call === undefined ? null : { ...momentOf(call), saw: this.#numberOf(call.saw) };
    return {
      index,
      id,
      provider,
      mode,
      timeoutMs,
      shadow,
      producer,
      called,
      settled: settlement === undefined ? null : { ...momentOf(settlement), afterConclusion: this.#isLate(settlement) },
      tookNs: said.kind === "lost" ? null : between(call, settlement),
      lagMs: settlement?.metadata?.lagMs ?? null,
      said,
      warnings,
      change: call && settlement ? changeBy(settlement.event, call.saw, this.#versions) : null,
    };
  }

  #isLate({ revision }: LegibleEvent): boolean {
    return this.conclusion !== null && revision > this.conclusion.revision;
  }

  #said(subscriber: Subscriber, settlement: LegibleEvent | undefined): Said {
    if (subscriber.skip !== undefined) return { kind: "skipped", why: subscriber.skip };
    const event = settlement?.event;
    if (event?.type === "timeout") {
      return { kind: "timeout", budgetMs: event.budgetMs, own: event.budgetMs === subscriber.timeoutMs };
    }
    if (event?.type === "outcome") return this.#answered(event);
    if (this.#calls.has(subscriber.index)) {
      return { kind: "in-flight", until: this.#state.kind === "aborted" ? this.#state.aborted.cause : null };
    }
    return { kind: "not-called", because: this.#notCalled() };
  }

  #notCalled(): NotCalled {
    const state = this.#state;
    if (this.#decided !== null) return { kind: stopOf(this.end), by: this.#decided.decidedBy };
    if (state.kind !== "aborted") return { kind: "pending" };
    const { cause, index } = state.aborted;
    const by = index === undefined ? null : (state.started.subscribers[index]?.id ?? null);
    return { kind: "aborted", cause, by };
  }

  #answered(event: Outcome): Said {
    switch (event.class) {
      case "ack":
      case "allow":
      case "transformed":
      case "policy":
      case "claimed":
      case "declined":
      case "lost":
        return { kind: event.class };
      case "deny":
        return { kind: event.class, reason: event.reason ?? null };
      case "rewritten":
        return { kind: event.class, defines: definedFields(event, this.#versions) };
      case "cancelled":
        return {
          kind: event.class,
          reason: event.reason ?? this.#text(event.set?.cancelReason ?? null),
          defines: definedFields(event, this.#versions),
        };
      case "failed":
      case "invalid":
        return { kind: event.class, error: event.error };
    }
  }

  #text(ref: Ref | null): string | null {
    const content = ref === null ? undefined : this.#versions.get(ref.digest)?.content;
    return content?.kind === "found" && typeof content.json === "string" ? content.json : null;
  }

  #numberOf(digest: Digest): number {
    return this.#versions.get(digest)?.number ?? 0;
  }
}

/** What kept the others from being called. */
function stopOf(end: RunEnd | null): "denied" | "claimed" | "cancelled" | "blocked" {
  switch (end) {
    case "claimed":
    case "cancelled":
    case "blocked":
      return end;
    case "unclaimed":
    case "passed":
    case "notified":
    case null:
      return "denied";
  }
}

function momentOf({ revision, metadata }: LegibleEvent): Moment {
  return { revision, atNs: metadata?.offsetNs ?? null };
}

function between(call: LegibleEvent | undefined, settlement: LegibleEvent | undefined): number | null {
  if (!call?.metadata || !settlement?.metadata) return null;
  return Math.max(0, settlement.metadata.offsetNs - call.metadata.offsetNs);
}
