/** What `conformance` found, for people and as JSON. */

import type { Checked } from "../conformance/run.js";
import type { HookMode } from "../core/events.js";
import type { HookPoint } from "../core/points.js";
import type { Output } from "./output.js";
import { type Cell, columns } from "./table.js";
import { foreign, foreignBlock } from "./text.js";

export type Row = Checked & { readonly payloadFile: string | undefined; readonly reproduce: string | undefined };

export type Report = {
  readonly source: string;
  readonly ok: boolean;
  readonly seed: number;
  readonly runs: number;
  readonly rows: readonly Row[];
};

export async function printReport(report: Report, out: Output): Promise<void> {
  await (out.json ? out.document(documentOf(report, out)) : out.print(textOf(report, out)));
}

function documentOf({ source, ok, seed, runs, rows }: Report, out: Output) {
  return {
    source,
    ok,
    seed,
    runs,
    served: [...servedBy(rows)].map(([point, modes]) => ({ point, modes })),
    checks: rows.map(({ point, mode, check, finding, payloadFile, reproduce }) => ({
      point,
      mode,
      check: check.name,
      ok: finding.ok,
      runs: finding.runs,
      ...(finding.ok ? {} : { message: out.redacted(finding.message) }),
      ...(payloadFile === undefined ? {} : { payloadFile }),
      ...(reproduce === undefined ? {} : { reproduce }),
    })),
  };
}

function servedBy(rows: readonly Row[]): ReadonlyMap<HookPoint, readonly HookMode[]> {
  const served = new Map<HookPoint, HookMode[]>();
  for (const { point, mode } of rows) {
    const modes = served.get(point) ?? [];
    served.set(point, modes);
    if (!modes.includes(mode)) modes.push(mode);
  }
  return served;
}

function textOf({ source, ok, seed, rows }: Report, out: Output): string {
  const { style } = out;
  const failed = rows.filter(({ finding }) => !finding.ok);
  const verdict = ok
    ? style.bold(style.green("conforms"))
    : style.bold(style.red(`${failed.length} of ${rows.length} checks ${failed.length === 1 ? "fails" : "fail"}`));
  const stands = [...servedBy(rows)].flatMap(([point, modes]) => modes.map((mode) => rowsAt(rows, point, mode)));
  return [
    `${verdict}  ${foreign(source)}, seed ${seed}`,
    "",
    ...columns(stands.map((at) => standCells(at, out))),
    ...failed.flatMap((row) => failureLines(row, out)),
  ].join("\n");
}

function rowsAt(rows: readonly Row[], point: HookPoint, mode: HookMode): readonly Row[] {
  return rows.filter((row) => row.point === point && row.mode === mode);
}

function standCells(rows: readonly Row[], { style }: Output): Cell[] {
  const [first] = rows;
  const bad = rows.filter(({ finding }) => !finding.ok).map(({ check }) => check.name);
  const runs = rows.reduce((sum, { finding }) => sum + finding.runs, 0);
  const { green, red, dim } = style;
  return [
    `  ${first?.point}`,
    first?.mode ?? "",
    bad.length === 0 ? { text: "ok", paint: green } : { text: bad.join(", "), paint: red },
    {
      text: `${rows.length} ${rows.length === 1 ? "check" : "checks"}, ${runs} ${runs === 1 ? "run" : "runs"}`,
      paint: dim,
    },
  ];
}

function failureLines({ point, mode, check, finding, payloadFile, reproduce }: Row, out: Output): readonly string[] {
  if (finding.ok) return [];
  const { style } = out;
  const line = (name: string, text: string | undefined) =>
    text === undefined ? [] : [`  ${style.dim(name.padEnd(9))}  ${text}`];
  return [
    "",
    `${style.red(check.name)}  ${point} ${mode}`,
    foreignBlock(out.redacted(finding.message)),
    ...line("rule", check.rule),
    ...line("why", check.why),
    ...line("payload", payloadFile && foreign(payloadFile)),
    ...line("reproduce", reproduce && style.cyan(foreign(reproduce))),
  ];
}
