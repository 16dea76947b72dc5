import type { Subscriber } from "../core/events.js";
import { HookledgerError } from "../errors.js";
import { HOOKS } from "../replay/hooks.js";
import type { EventStore } from "../store/port.js";
import type { CommandCall, CommandFile } from "./command.js";
import { EXIT } from "./exit.js";
import { type Listed, type ListRow, listed } from "./list-row.js";
import type { Output } from "./output.js";
import { withLedger } from "./reading.js";
import { unknownSession } from "./select.js";
import { type Cell, columns } from "./table.js";
import { foreign } from "./text.js";
import { verdictWord } from "./verdict.js";

type Filters = {
  /** undefined: any; null: none. */
  readonly session: string | null | undefined;
  readonly subscriber: string | undefined;
  readonly matches: (row: ListRow) => boolean;
  readonly limit: number;
};

export const list: CommandFile = {
  name: "list",
  summary: "lists dispatches, newest first",
  options: [
    { flags: "--session <id>", description: 'only of this session; "" for those without one' },
    { flags: "--point <point>", description: "only of this hook point or message hook" },
    { flags: "--decision <decision>", description: "only decided so: allow or deny" },
    { flags: "--status <status>", description: "only decided, aborted, open or unreadable ones" },
    { flags: "--subscriber <name>", description: "only where this subscriber (or provider) stood in the chain" },
    { flags: "--since <time>", description: "only begun then or later: ISO 8601, or a duration before now (2h, 7d)" },
    { flags: "--until <time>", description: "only begun before then" },
    { flags: "--limit <n>", description: "at most so many" },
  ],
  examples: [
    { command: "hookledger list --limit 20", does: "the last twenty dispatches" },
    { command: "hookledger list --point plan-ready --decision deny --since 7d", does: "plans denied within a week" },
    { command: "hookledger list --point message_sending --decision deny", does: "messages that a plugin kept back" },
    { command: "hookledger --json list --status open", does: "what a crash may have left open, as NDJSON" },
  ],
  async run(call) {
    const filters = filtersOf(call, Date.now());
    return withLedger(call, async (store) => {
      await listDispatches(store, filters, call.out);
      return EXIT.done;
    });
  },
};

function filtersOf(call: CommandCall, now: number): Filters {
  const session = call.text("session");
  const point = call.oneOf("point", HOOKS);
  const decision = call.oneOf("decision", ["allow", "deny"]);
  const status = call.oneOf("status", ["decided", "aborted", "open", "unreadable"]);
  const since = call.moment("since", now);
  const until = call.moment("until", now);
  return {
    session: session === "" ? null : session,
    subscriber: call.text("subscriber"),
    limit: call.whole("limit", { min: 1 }) ?? Number.POSITIVE_INFINITY,
    matches: (row) =>
      (point === undefined || row.point === point) &&
      (decision === undefined || row.decision === decision) &&
      (status === undefined || row.status === status) &&
      startedWithin(row.startedAt, since, until),
  };
}

/** What has no readable time is within no bounds. */
function startedWithin(startedAt: string | null, since: number | undefined, until: number | undefined): boolean {
  if (since === undefined && until === undefined) return true;
  const started = startedAt === null ? Number.NaN : Date.parse(startedAt);
  return started >= (since ?? Number.NEGATIVE_INFINITY) && started < (until ?? Number.POSITIVE_INFINITY);
}

async function listDispatches(store: EventStore, filters: Filters, out: Output): Promise<void> {
  let shown = 0;
  let known = false;
  let unreadable = 0;
  const session = filters.session === undefined ? {} : { session: filters.session };
  for await (const page of store.readStreams({ order: "newest", ...session })) {
    const named = page.map(listed).filter(({ subscribers }) => isNamed(subscribers, filters.subscriber));
    known ||= named.length > 0;
    const rows = named.filter(({ row }) => filters.matches(row)).slice(0, filters.limit - shown);
    unreadable += rows.filter(({ row }) => row.status === "unreadable").length;
    if (!(await printRows(rows, shown === 0, out))) return;
    shown += rows.length;
    if (shown >= filters.limit) break;
  }
  if (unreadable > 0) out.warn(`${unreadable} of these do not replay; hookledger verify --all says where and why`);
  if (known) {
    if (shown === 0) out.note(out.noteStyle.dim("No dispatch matches."));
    return;
  }
  if (filters.subscriber !== undefined)
    throw new HookledgerError("HL_NOT_FOUND", `no dispatch had a subscriber ${filters.subscriber}`);
  if (filters.session !== undefined) throw unknownSession(filters.session);
  out.note(out.noteStyle.dim("The ledger is empty."));
}

function isNamed(subscribers: readonly Subscriber[], name: string | undefined): boolean {
  return name === undefined || subscribers.some(({ id, provider }) => id === name || provider === name);
}

/** false: nobody reads any more. */
async function printRows(rows: readonly Listed[], first: boolean, out: Output): Promise<boolean> {
  if (out.json) {
    for (const { row } of rows) if (!(await out.document(row))) return false;
    return true;
  }
  if (rows.length === 0) return true;
  const titles = ["DISPATCH", "STARTED", "POINT", "VERDICT", "EVENTS", "DECIDED BY", "SESSION"];
  const heading: readonly Cell[] = titles.map((text) => ({ text, paint: out.style.dim }));
  const lines = columns([heading, ...rows.map((row) => cellsOf(row, out))], [26, 20, 21, 20, 6, 16]);
  return out.print(lines.slice(first ? 0 : 1).join("\n"));
}

function cellsOf({ row, allowed, abortCause, end }: Listed, { style }: Output): readonly Cell[] {
  const verdict = verdictWord({ ...row, allowed, abortCause, end });
  return [
    foreign(row.dispatchId),
    { text: foreign(row.startedAt ?? "").replace(/\.\d+Z$/, "Z"), paint: style.dim },
    foreign(row.point ?? ""),
    { text: verdict.text, paint: style[verdict.tone] },
    String(row.events),
    foreign(row.decidedBy ?? ""),
    foreign(row.session ?? ""),
  ];
}
