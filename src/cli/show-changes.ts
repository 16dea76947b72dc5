/** What a subscriber changed, one change after the other. */
import type { Change } from "../replay/payload-diff.js";
import type { Timeline } from "../replay/timeline.js";
import type { LinkChange, PayloadVersion } from "../replay/timeline-change.js";
import { cutFront } from "./show-chart.js";
import { leavesOf, pairText, valueText } from "./show-excerpt.js";
import type { Style } from "./style.js";
import { columns } from "./table.js";
import { foreign, width } from "./text.js";

const INDENT = "     ";
const UNSEEN = "only in parts that have no JSON form: fields that this version does not know";
const SAME = "nothing that was not there before";
const MARKS = { added: "+", removed: "-", changed: "~" } as const;

export function changeLines(
  change: LinkChange,
  { versions, composition }: Timeline,
  style: Style,
  columnsWide: number,
  maxChanges: number,
): readonly string[] {
  if (change.from === change.to) return [];
  if (change.difference === null) {
    const unseen = change.compared.flatMap((number) => versions[number - 1] ?? []).filter(isUnseen);
    return unseen.map(
      (version) => `${INDENT}${style.yellow(`v${version.number} cannot be compared: ${statusText(version)}`)}`,
    );
  }
  const { changes, more } = change.difference;
  const shown = changes.slice(0, maxChanges);
  const hidden = changes.length - shown.length + more;
  if (shown.length === 0) return [`${INDENT}${style.dim(composition === "chain" ? UNSEEN : SAME)}`];
  return [
    ...shown.flatMap((one) => oneChange(one, style, columnsWide)),
    ...(hidden === 0
      ? []
      : [`${INDENT}${style.dim(`… and ${hidden} more changes; --verbose lists more, --json all`)}`]),
  ];
}

function oneChange(change: Change, style: Style, columnsWide: number): readonly string[] {
  const path = cutFront(foreign(change.path), Math.max(24, columnsWide - 16));
  const head = `${INDENT}${MARKS[change.kind]} ${path}`;
  const room = Math.max(24, columnsWide - INDENT.length - 6);
  switch (change.kind) {
    case "added":
      return fitted(head, valueText(change.after, room), columnsWide, style.green);
    case "removed":
      return fitted(head, valueText(change.before, room), columnsWide, style.red);
    case "changed": {
      const [before, after] = pairText(change.before, change.after, room);
      const line = `${head}  ${before} → ${after}`;
      if (width(line) <= columnsWide) return [`${head}  ${style.red(before)} → ${style.green(after)}`];
      return [head, `${INDENT}    ${style.red(before)}`, `${INDENT}  → ${style.green(after)}`];
    }
  }
}

function fitted(head: string, value: string, columnsWide: number, paint: (text: string) => string): readonly string[] {
  return width(head) + 2 + width(value) <= columnsWide
    ? [`${head}  ${paint(value)}`]
    : [head, `${INDENT}    ${paint(value)}`];
}

/** Every version with its digest, and the members of the input. */
export function payloadLines(
  timeline: Timeline,
  style: Style,
  columnsWide: number,
  maxMembers: number,
): readonly string[] {
  const { versions, links } = timeline;
  const rows = versions.map((version) => [
    `  v${version.number}`,
    version.by === null ? "the input" : `${what(version)}by ${foreign(links[version.by]?.id ?? `#${version.by}`)}`,
    { text: version.ref.digest, paint: style.dim },
    sizeText(version.ref.size),
    { text: isUnseen(version) ? statusText(version) : "", paint: style.yellow },
  ]);
  const input = versions[0];
  return [
    ...columns(rows),
    ...(input?.content.kind === "found" ? memberLines(input.content.json, style, columnsWide, maxMembers) : []),
  ];
}

/** What is no version of the whole payload. */
function what({ role }: PayloadVersion): string {
  switch (role) {
    case "input":
    case "payload":
      return "";
    case "result":
    case "content":
    case "metadata":
      return `${role} `;
    case "cancelReason":
      return "cancel reason ";
  }
}

function memberLines(
  json: Parameters<typeof leavesOf>[0],
  style: Style,
  columnsWide: number,
  maxMembers: number,
): readonly string[] {
  const { leaves, more } = leavesOf(json, maxMembers);
  const paths = leaves.map(({ path }) => cutFront(foreign(path), Math.floor(columnsWide / 2)));
  const room = columnsWide - INDENT.length - 2 - Math.max(0, ...paths.map(width));
  const rows = leaves.map(({ value }, place) => [
    { text: `${INDENT}${paths[place]}`, paint: style.dim },
    valueText(value, Math.max(16, room)),
  ]);
  const rest = `${INDENT}… and ${more} more; --verbose lists more, --json all`;
  return [...columns(rows), ...(more === 0 ? [] : [style.dim(rest)])];
}

function isUnseen({ content }: PayloadVersion): boolean {
  return content.kind !== "found";
}

function statusText({ content }: PayloadVersion): string {
  switch (content.kind) {
    case "found":
      return "";
    case "missing":
      return "the bytes are gone: erased, or never kept";
    case "altered":
      return "the bytes are not those that were recorded: altered, or missing in part";
    case "large":
      return "too large to be shown here";
    case "unreadable":
      return `the bytes cannot be read: ${foreign(content.why)}`;
  }
}

/** `412 B`, `1.2 KiB`, `3 MiB` */
function sizeText(bytes: number): string {
  if (bytes < 1024) return `${bytes} B`;
  const kib = bytes / 1024;
  return kib < 1024 ? `${round(kib)} KiB` : `${round(kib / 1024)} MiB`;
}

function round(value: number): string {
  return value >= 100 ? value.toFixed(0) : value.toPrecision(2).replace(/\.0$/, "");
}
