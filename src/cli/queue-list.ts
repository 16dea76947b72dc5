import { DELIVERY_STATES, type DeliveryQueue, type DeliveryState, type QueuedDelivery } from "../store/queue.js";
import type { CommandFile } from "./command.js";
import { EXIT } from "./exit.js";
import type { Output } from "./output.js";
import { queued, requireQueue } from "./queue.js";
import { withLedger } from "./reading.js";
import type { Style } from "./style.js";
import { type Cell, columns } from "./table.js";
import { foreign } from "./text.js";
import { showDuration } from "./time.js";

const TITLES = ["DELIVERY", "STATE", "LANE", "ATTEMPTS", "AGE", "ERROR"];
/** Columns that a page keeps for each, so that the next one stands below it. */
const WIDTHS = [26, 10, 16, 8, 8];

const TONES: Readonly<Record<DeliveryState, keyof Style>> = {
  pending: "dim",
  attempting: "dim",
  unknown: "yellow",
  sent: "green",
  failed: "red",
  dropped: "dim",
};

type Listing = { readonly states: readonly DeliveryState[]; readonly limit: number; readonly now: number };

export const queueList: CommandFile = {
  name: "queue list",
  summary: "lists deliveries in durable custody, oldest first",
  options: [
    { flags: "--state <state>", description: `only in this state: ${DELIVERY_STATES.join(", ")}` },
    { flags: "--limit <n>", description: "at most so many" },
  ],
  examples: [
    {
      command: "hookledger queue list --state unknown",
      does: "what may have been sent, and waits for somebody to say",
    },
    { command: "hookledger --json queue list", does: "all of them with payload and route, as NDJSON" },
  ],
  async run(call) {
    const state = call.oneOf("state", DELIVERY_STATES);
    const limit = call.whole("limit", { min: 1 }) ?? Number.POSITIVE_INFINITY;
    const states = state === undefined ? DELIVERY_STATES : [state];
    return withLedger(call, async (store) => {
      await listDeliveries(requireQueue(store), { states, limit, now: Date.now() }, call.out);
      return EXIT.done;
    });
  },
};

async function listDeliveries(queue: DeliveryQueue, { states, limit, now }: Listing, out: Output): Promise<void> {
  let shown = 0;
  let unknown = 0;
  for await (const page of queued(queue, { states })) {
    const rows = page.slice(0, limit - shown);
    if (!(await printRows(rows, shown === 0, now, out))) return;
    unknown += rows.filter(({ state }) => state === "unknown").length;
    shown += rows.length;
    if (shown >= limit) break;
  }
  const { dim } = out.noteStyle;
  if (shown === 0) out.note(dim(states.length === 1 ? "No delivery matches." : "The queue is empty."));
  if (unknown > 0 && !out.json) {
    const what = unknown === 1 ? "1 of these may have been sent" : `${unknown} of these may have been sent`;
    out.note(dim(`${what}: hookledger queue resolve <id> --sent, --retry or --drop says what becomes of it`));
  }
}

/** false: nobody reads any more. */
async function printRows(rows: readonly QueuedDelivery[], first: boolean, now: number, out: Output): Promise<boolean> {
  if (out.json) {
    for (const row of rows) if (!(await out.document(documentOf(row)))) return false;
    return true;
  }
  const heading: readonly Cell[] = TITLES.map((text) => ({ text, paint: out.style.dim }));
  const lines = columns([heading, ...rows.map((row) => cellsOf(row, now, out.style))], WIDTHS);
  return out.print(lines.slice(first ? 0 : 1).join("\n"));
}

function documentOf(delivery: QueuedDelivery) {
  return {
    ...delivery,
    dueAt: isoTime(delivery.dueAt),
    createdAt: isoTime(delivery.createdAt),
    updatedAt: isoTime(delivery.updatedAt),
  };
}

function cellsOf(delivery: QueuedDelivery, now: number, style: Style): readonly Cell[] {
  const { id, state, lane, attempts, createdAt, error } = delivery;
  return [
    foreign(id),
    { text: state, paint: style[TONES[state]] },
    foreign(lane),
    String(attempts),
    { text: showDuration(Math.max(0, now - createdAt)), paint: style.dim },
    foreign(error ?? ""),
  ];
}

/** null for what is no time: the ledger may hold any number. */
function isoTime(ms: number): string | null {
  const time = new Date(ms);
  return Number.isNaN(time.getTime()) ? null : time.toISOString();
}
