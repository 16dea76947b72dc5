import { HookledgerError } from "../errors.js";
import { openStore } from "../store/open.js";
import type { DeliveryChange, DeliveryState } from "../store/queue.js";
import type { CommandCall, CommandFile } from "./command.js";
import { EXIT } from "./exit.js";
import { deliveryNamed, requireQueue } from "./queue.js";
import { withLedger } from "./reading.js";

type Resolution = {
  readonly flag: string;
  readonly from: readonly DeliveryState[];
  readonly change: DeliveryChange & { readonly state: DeliveryState };
};

const OPEN: readonly DeliveryState[] = ["unknown", "pending", "failed"];

export const queueResolve: CommandFile = {
  name: "queue resolve",
  summary: "says what becomes of a delivery that may have been sent",
  args: "<id>",
  options: [
    { flags: "--sent", description: "it has arrived: an unknown one" },
    { flags: "--retry", description: "send it, maybe again, from now on: an unknown, pending or failed one" },
    { flags: "--drop", description: "never send it: an unknown, pending or failed one" },
  ],
  examples: [
    { command: "hookledger queue resolve 01KDYC4V --sent", does: "the other side has it" },
    { command: "hookledger queue resolve 01KDYC4V --retry", does: "it has not: send it once more" },
  ],
  async run(call) {
    const [id = ""] = call.args;
    const resolution = resolutionOf(call, Date.now());
    // Nothing is created, nor opened for writing, for a delivery that is not there.
    const named = await withLedger(call, (store) => deliveryNamed(requireQueue(store), id));
    requireState(named, resolution);
    const store = await openStore(call.store, { mode: "write" });
    try {
      const queue = requireQueue(store);
      if (!(await queue.change(named.id, [named.state], resolution.change, true))) {
        requireState(await deliveryNamed(queue, named.id), { ...resolution, from: [] });
      }
    } finally {
      await store.close();
    }
    const { state } = resolution.change;
    if (call.out.json) await call.out.document({ id: named.id, was: named.state, state });
    else await call.out.print(`${named.id} was ${named.state}, is ${state}`);
    return EXIT.done;
  },
};

function resolutionOf(call: CommandCall, now: number): Resolution {
  const all: readonly Resolution[] = [
    { flag: "sent", from: ["unknown"], change: { state: "sent", updatedAt: now } },
    { flag: "retry", from: OPEN, change: { state: "pending", dueAt: now, updatedAt: now } },
    { flag: "drop", from: OPEN, change: { state: "dropped", updatedAt: now } },
  ];
  const [chosen, second] = all.filter(({ flag }) => call.flag(flag));
  if (chosen !== undefined && second === undefined) return chosen;
  throw new HookledgerError(
    "HL_USAGE",
    chosen === undefined
      ? "nothing says what becomes of the delivery"
      : "--sent, --retry and --drop exclude each other",
    { hint: "Give one of --sent, --retry and --drop." },
  );
}

/** Throws HL_DELIVERY_STATE. */
function requireState(
  { id, state }: { readonly id: string; readonly state: DeliveryState },
  { flag, from }: Resolution,
): void {
  if (from.includes(state)) return;
  throw new HookledgerError("HL_DELIVERY_STATE", `the delivery ${id} is ${state}: --${flag} changed nothing`, {
    hint: hintFor(state),
  });
}

function hintFor(state: DeliveryState): string {
  switch (state) {
    case "attempting":
      return "Somebody is sending it; if that process ends without a word, it becomes unknown.";
    case "sent":
    case "dropped":
      return "That is final.";
    case "pending":
    case "failed":
      return "It was not sent; --retry and --drop are for it.";
    case "unknown":
      return "Somebody else has just changed it; look again.";
  }
}
