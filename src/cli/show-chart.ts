/** Who ran when: a bar for every subscriber on one scale of time, in the width of the terminal. */
import type { Timeline, TimelineLink } from "../replay/timeline.js";
import { saidWords, type Tone } from "./show-words.js";
import type { Style } from "./style.js";
import { columns } from "./table.js";
import { foreign, width } from "./text.js";
import { showDuration } from "./time.js";

const MAX_NAME = 28;
const MIN_BAR = 16;
const MAX_BAR = 64;
const MIN_WORDS = 12;
const GAPS = 10;

export function chartLines(timeline: Timeline, style: Style, columnsWide: number): readonly string[] {
  const { links, spanNs, conclusion } = timeline;
  if (links.length === 0) return [style.dim("  nobody stands in the chain")];
  const names = links.map(({ id }) => cut(foreign(id), MAX_NAME));
  const fixed = 2 + numberWidth(links) + longest(names) + longest(links.map(({ mode }) => mode)) + 7 + GAPS;
  const cells = Math.min(MAX_BAR, Math.max(MIN_BAR, Math.floor((columnsWide - fixed) * 0.6)));
  const room = Math.max(MIN_WORDS, columnsWide - fixed - cells);
  const end = conclusion?.atNs ?? null;
  const rows = links.map((link, place) => {
    const words = saidWords(link, timeline);
    const tone = toneOf(style, words.tone);
    return [
      `  #${link.index}`,
      { text: names[place] ?? "", paint: link.called === null ? style.dim : style.bold },
      { text: link.mode, paint: style.dim },
      { text: barOf(link, spanNs, end, cells), paint: tone },
      link.tookNs === null ? "" : showDuration(link.tookNs / 1e6),
      { text: cut(words.text, room), paint: tone },
    ];
  });
  const scale = ["", "", "", { text: axis(spanNs, cells), paint: style.dim }];
  const mark = ["", "", "", { text: marker(timeline, cells), paint: style.dim }];
  return columns([scale, ...rows, ...(end === null ? [] : [mark])]);
}

/** `█` while running, `▒` after the conclusion, `░` for a shadow, `»` where no end is recorded, `│` at the conclusion. */
function barOf(link: TimelineLink, spanNs: number, concludedNs: number | null, cells: number): string {
  const bar = new Array<string>(cells).fill(" ");
  const decision = concludedNs === null ? -1 : cellOf(concludedNs, spanNs, cells);
  if (decision >= 0) bar[decision] = "│";
  const from = link.called?.atNs ?? null;
  if (from === null) return bar.join("");
  const until = link.settled?.atNs ?? null;
  const isOpen = until === null || link.said.kind === "lost";
  const first = cellOf(from, spanNs, cells);
  const last = isOpen ? cells - 1 : Math.max(first, cellOf(until, spanNs, cells));
  for (let cell = first; cell <= last; cell++) {
    const late = decision >= 0 && cell > decision;
    bar[cell] = link.shadow ? "░" : late ? "▒" : "█";
  }
  if (isOpen) bar[last] = "»";
  return bar.join("");
}

function cellOf(ns: number, spanNs: number, cells: number): number {
  return spanNs <= 0 ? 0 : Math.min(cells - 1, Math.floor((ns / spanNs) * cells));
}

function axis(spanNs: number, cells: number): string {
  const end = ` ${showDuration(spanNs / 1e6)}`;
  return `0 ${"─".repeat(Math.max(1, cells - 2 - width(end)))}${end}`;
}

function marker({ conclusion, verdict, spanNs, withdrawn }: Timeline, cells: number): string {
  const atNs = conclusion?.atNs ?? 0;
  const cell = cellOf(atNs, spanNs, cells);
  const word = withdrawn !== null || verdict.status === "decided" ? "decided" : "aborted";
  const label = `${word} after ${showDuration(atNs / 1e6)}`;
  const left = `${label} ▲`;
  return width(left) <= cell + 1 ? " ".repeat(cell + 1 - width(left)) + left : `${" ".repeat(cell)}▲ ${label}`;
}

export function toneOf(style: Style, tone: Tone): (text: string) => string {
  switch (tone) {
    case "good":
      return style.green;
    case "bad":
      return style.red;
    case "doubtful":
      return style.yellow;
    case "quiet":
      return style.dim;
  }
}

/** At most `max` characters, the mark of the cut included. */
export function cut(text: string, max: number): string {
  const characters = Array.from(text);
  return characters.length <= max ? text : `${characters.slice(0, max - 1).join("")}…`;
}

/** The same from the front: the end of a path tells more. */
export function cutFront(text: string, max: number): string {
  const characters = Array.from(text);
  return characters.length <= max ? text : `…${characters.slice(1 - max).join("")}`;
}

function longest(texts: readonly string[]): number {
  return Math.max(0, ...texts.map(width));
}

function numberWidth(links: readonly TimelineLink[]): number {
  return String(links.length).length + 1;
}
