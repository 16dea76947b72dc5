import { placeOf } from "../audit/cursor.js";
import { auditRecords } from "../audit/export.js";
import { CSV_HEADER, csvLine } from "../audit/format.js";
import type { AuditRecord } from "../audit/record.js";
import type { AuditSelection } from "../audit/selection.js";
import { HookledgerError } from "../errors.js";
import { type ExportTarget, fileTarget, stdoutTarget } from "./audit-out.js";
import type { CommandCall, CommandFile } from "./command.js";
import { EXIT, type ExitCode } from "./exit.js";
import { withLedger } from "./reading.js";
import { foreign, jsonText } from "./text.js";

export const auditExport: CommandFile = {
  name: "audit export",
  summary: "writes what an auditor asks for, in ledger order, resumable",
  options: [
    {
      flags: "--observe-errors",
      description: "failures, invalid answers and timeouts of observers, and of handlers of messages",
    },
    {
      flags: "--denials",
      description: "decisions to deny (deliveries kept back, too), and plan items that policy denied",
    },
    { flags: "--timeouts", description: "timeouts of subscribers of any mode" },
    { flags: "--aborts", description: "dispatches that were aborted, and why" },
    { flags: "--all", description: "every outcome, timeout, abort and decision" },
    { flags: "--format <format>", description: "ndjson (default) or csv" },
    { flags: "--since <time>", description: "from this time on, such as 2026-02-28T09:30:00Z or 24h" },
    { flags: "--until <time>", description: "before this time" },
    { flags: "--after <cursor>", description: "go on right behind the record with this cursor" },
    { flags: "--out <file>", description: "write a file, replaced whole or not at all" },
  ],
  examples: [
    { command: "hookledger audit export --observe-errors", does: "every failed observer, one JSON object a line" },
    {
      command: "hookledger audit export --denials --timeouts --since 7d --format csv --out audit.csv",
      does: "a week of denials and timeouts for a spreadsheet",
    },
    { command: "hookledger audit export --all --after <cursor>", does: "what was added since the last export" },
  ],
  run,
};

type Format = {
  readonly header: string | null;
  line(record: AuditRecord): string;
  /** Between lines. */
  readonly end: string;
};

const NDJSON: Format = { header: null, line: jsonText, end: "\n" };
const CSV: Format = { header: CSV_HEADER, line: (record) => csvLine(record, foreign), end: "\r\n" };

async function run(call: CommandCall): Promise<ExitCode> {
  const query = queryOf(call);
  const format = call.oneOf("format", ["ndjson", "csv"]) === "csv" ? CSV : NDJSON;
  const path = call.text("out");
  if (path === "") throw new HookledgerError("HL_USAGE", "--out needs the name of a file");
  return withLedger(call, async (store) => {
    const target = path === undefined ? stdoutTarget(call.out) : await fileTarget(path);
    try {
      const count = await write(auditRecords(store, query), format, target, call);
      await target.finish();
      if (path !== undefined)
        call.out.note(`${count} ${count === 1 ? "record" : "records"} written to ${foreign(path)}`);
    } finally {
      await target.discard();
    }
    return EXIT.done;
  });
}

async function write(
  pages: AsyncIterable<readonly AuditRecord[]>,
  format: Format,
  target: ExportTarget,
  { out }: CommandCall,
): Promise<number> {
  let count = 0;
  const print = (lines: readonly string[]) => target.write(lines.join(format.end) + format.end.slice(0, -1));
  if (format.header !== null && !(await print([format.header]))) return count;
  for await (const page of pages) {
    if (page.length > 0 && !(await print(page.map(format.line)))) return count;
    count += page.length;
    out.progress(`${count} records`);
  }
  return count;
}

function queryOf(call: CommandCall) {
  const selection: AuditSelection = {
    observeErrors: call.flag("observeErrors"),
    denials: call.flag("denials"),
    timeouts: call.flag("timeouts"),
    aborts: call.flag("aborts"),
    all: call.flag("all"),
  };
  if (!Object.values(selection).includes(true)) {
    throw new HookledgerError("HL_USAGE", "audit export needs to know what to export", {
      hint: "Give at least one of --observe-errors, --denials, --timeouts, --aborts and --all.",
    });
  }
  const now = Date.now();
  const since = call.moment("since", now);
  const until = call.moment("until", now);
  const after = call.text("after");
  return {
    selection,
    ...(since === undefined ? {} : { since }),
    ...(until === undefined ? {} : { until }),
    ...(after === undefined ? {} : { after: placeOf(after) }),
  };
}
