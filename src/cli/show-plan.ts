/** What policy said of each plan item, and the rule that made it say so. */
import type { PolicyMatch } from "../core/policy.js";
import type { Timeline } from "../replay/timeline.js";
import type { ArchivedRule, Origin, PlanLine } from "../replay/timeline-plan.js";
import { toneOf } from "./show-chart.js";
import type { Tone } from "./show-words.js";
import type { Style } from "./style.js";
import { columns } from "./table.js";
import { foreign } from "./text.js";

const TONES = { allow: "good", ask: "doubtful", deny: "bad" } as const satisfies Record<string, Tone>;

export function planLinesText(timeline: Timeline, style: Style): readonly string[] {
  return timeline.plan.flatMap((line) => [
    ...columns([
      [
        `  ${foreign(line.itemId)}`,
        { text: line.decision.toUpperCase(), paint: toneOf(style, TONES[line.decision]) },
        `by ${foreign(line.decidedBy)}`,
        { text: itemText(line), paint: style.dim },
      ],
    ]),
    `     ${originText(line, style)}`,
    ...(line.reason === null || isOfRule(line) ? [] : [`     reason: ${foreign(line.reason)}`]),
    ...overruled(line, timeline, style),
  ]);
}

/** The rule is shown with its reason. */
function isOfRule({ reason, origin }: PlanLine): boolean {
  return origin.kind === "rule" && origin.rule.reason === reason;
}

function itemText({ item }: PlanLine): string {
  if (item === null) return "";
  const what = [item.toolName, item.provider === null ? null : `of ${item.provider}`].filter((text) => text !== null);
  const traits = [item.kind, item.risk].filter((text) => text !== null).join(", ");
  const words = traits === "" ? what : [...what, `(${traits})`];
  const description = item.description === null ? "" : `: ${item.description}`;
  return foreign(`${words.join(" ")}${description}`);
}

function originText({ origin, decision }: PlanLine, style: Style): string {
  switch (origin.kind) {
    case "rule":
      return ruleText(origin.rule);
    case "default":
      return decision === "ask"
        ? "no rule matched: resources are asked about"
        : "no rule matched: data sources and interactive items may go";
    case "earlier":
      return "it came in denied, and a denial stands";
    case "unknown":
      return style.yellow(unknownText(origin.config));
  }
}

function ruleText({ name, match, action, reason, place }: ArchivedRule): string {
  const where = place === null ? "" : ` at ${foreign(place.file)}:${place.line}:${place.col}`;
  const why = reason === null ? "" : `, reason ${quoted(reason)}`;
  return `rule ${quoted(name)}${where}: match ${matchText(match)}, action ${action}${why}`;
}

function matchText({ kind, provider, tool_name, risk }: PolicyMatch): string {
  const parts = Object.entries({ tool_name, provider, risk, kind }).flatMap(([key, value]) =>
    value === undefined ? [] : [`${key} = ${quoted(value)}`],
  );
  return parts.length === 0 ? "everything" : parts.join(", ");
}

function quoted(text: string): string {
  return `"${foreign(text)}"`;
}

function unknownText(config: Extract<Origin, { kind: "unknown" }>["config"]): string {
  switch (config) {
    case "found":
      return "the archived configuration has no such rule";
    case "missing":
      return "the rule cannot be shown: the archived configuration is gone";
    case "altered":
      return "the rule cannot be shown: the archived configuration was altered";
    case "unreadable":
      return "the rule cannot be shown: the archived configuration cannot be read";
  }
}

/** A subscriber that denies a plan denies each of its items. */
function overruled({ itemId }: PlanLine, { verdict }: Timeline, style: Style): readonly string[] {
  const final = verdict.planDecisions.find((item) => item.itemId === itemId);
  if (final === undefined || final.decision === final.policyDecision) return [];
  return [`     ${style.red(`denied with the whole plan by ${foreign(final.decidedBy)}`)}`];
}
