import { HookledgerError } from "../errors.js";
import type { Json } from "../payload/canonical-json.js";
import { cancelReason } from "../replay/cancel-reason.js";
import { payloadJson } from "../replay/payload-json.js";
import { type Replayed, replayStream } from "../replay/replay.js";
import { runEnd } from "../replay/run-end.js";
import type { EventStore, StreamEvents } from "../store/port.js";
import { payloadBytes } from "../store/record/payload-bytes.js";
import type { CommandFile } from "./command.js";
import { documentOfReplay } from "./document.js";
import { EXIT } from "./exit.js";
import { reportFailure } from "./failure.js";
import type { Output } from "./output.js";
import { withLedger } from "./reading.js";
import { dispatchIdOf, SELECTION_OPTIONS, selectedStreams, selectionOf } from "./select.js";
import { foreignBlock, prettyJson } from "./text.js";
import { verdictLines } from "./verdict.js";

/** Lines of a payload that people are shown. */
const PAYLOAD_LINES = 60;

export const replay: CommandFile = {
  name: "replay",
  summary: "folds recorded events again, calling nobody, and prints what they come to",
  args: "[id...]",
  options: [
    ...SELECTION_OPTIONS,
    { flags: "--at <revision>", description: "only up to this revision, the first being 0" },
  ],
  examples: [
    { command: "hookledger replay 01JZ8", does: "what a dispatch came to; the beginning of its id will do" },
    { command: "hookledger replay 01JZ8 --at 3", does: "how it stood after its fourth event" },
    { command: "hookledger --json replay --session s-42", does: "every dispatch of a session, one JSON line each" },
  ],
  async run(call) {
    const selection = selectionOf(call);
    const until = call.whole("at", { min: 0 });
    const { out } = call;
    return withLedger(call, async (store) => {
      let failed = false;
      for await (const stream of selectedStreams(store, selection)) {
        const replayed = replayStream(stream, until);
        if ("state" in replayed) {
          const reason = replayed.verdict.reason ?? (await cancelReason(store, stream.events, replayed.state));
          const told = { ...replayed, verdict: { ...replayed.verdict, reason } };
          if (!(await printReplayed(told, await payloadOf(store, stream, told, out), out))) break;
          continue;
        }
        failed = true;
        const { kind, revision, expected, found } = replayed;
        const message = `dispatch ${dispatchIdOf(stream.stream)} does not replay: ${kind} at revision ${revision}, expected ${expected}, found ${found}`;
        await reportFailure(out, new HookledgerError("HL_DIVERGENCE", message));
      }
      return failed ? EXIT.divergence : EXIT.done;
    });
  },
};

/** The recorded payload that the state goes on with; null where nobody may go on, and where it cannot be shown. */
async function payloadOf(
  store: EventStore,
  { events }: StreamEvents,
  { state, payload, verdict }: Replayed,
  out: Output,
): Promise<Json | null> {
  if (state.kind === "aborted") return null;
  const bytes = await payloadBytes(store, events, payload);
  const problem = (what: string) => {
    out.warn(`the payload of dispatch ${verdict.dispatchId} ${what}; hookledger verify ${verdict.dispatchId}`);
    return null;
  };
  switch (bytes.kind) {
    case "missing":
      return problem("is not in the ledger");
    case "altered":
      return problem("is not what was recorded");
    case "found":
      try {
        return payloadJson(bytes.bytes, state.started.input.encoding);
      } catch (error) {
        if (error instanceof HookledgerError) return problem("is no payload that this version reads");
        throw error;
      }
  }
}

/** false: nobody reads any more. */
async function printReplayed(replayed: Replayed, payload: Json | null, out: Output): Promise<boolean> {
  const document = documentOfReplay(replayed, payload);
  if (out.json) return out.document(document);
  const lines = [...verdictLines(document, out.style, { end: runEnd(replayed.state) })];
  if (payload !== null) lines.push(payloadText(payload));
  return out.print(`${lines.join("\n")}\n`);
}

function payloadText(payload: Json): string {
  const lines = prettyJson(payload).split("\n");
  const shown = lines.slice(0, PAYLOAD_LINES);
  if (lines.length > shown.length) shown.push(`… ${lines.length - shown.length} more lines; --json prints all`);
  return foreignBlock(shown.join("\n"));
}
