import { HookledgerError } from "../errors.js";
import { timelineOf } from "../replay/timeline.js";
import { legibleRecord } from "../replay/timeline-record.js";
import { readSources } from "../replay/timeline-sources.js";
import { Verifier } from "../replay/verify.js";
import type { EventStore } from "../store/port.js";
import type { CommandCall, CommandFile } from "./command.js";
import { EXIT, type ExitCode } from "./exit.js";
import { withLedger } from "./reading.js";
import { streamNamed } from "./select.js";
import { timelineDocument, unreadableDocument } from "./show-json.js";
import { timelineText, unreadableText } from "./show-text.js";

/** Columns where no terminal says how many it has. */
const DEFAULT_WIDTH = 100;
const MIN_WIDTH = 60;
const MAX_WIDTH = 160;

export const show: CommandFile = {
  name: "show",
  summary: "tells the whole story of one dispatch: who ran, saw, said and changed what, who decided and why",
  args: "<id>",
  options: [],
  examples: [
    { command: "hookledger show 01K3", does: "one dispatch, by the beginning of its id" },
    { command: "hookledger show 01K3 --verbose", does: "with more of its payload and changes" },
    { command: "hookledger show 01K3 --json", does: "the same for a program, with every payload" },
  ],
  run: (call) => withLedger(call, (store) => showDispatch(call, store)),
};

/** Ends well wherever something can be shown; whether the record is sound is for verify to judge. */
async function showDispatch({ args: [id = ""], out }: CommandCall, store: EventStore): Promise<ExitCode> {
  const stream = await store.readStream(await streamNamed(store, id));
  if (stream === null) throw new HookledgerError("HL_NOT_FOUND", `no dispatch has the id ${id}`);
  const record = legibleRecord(stream);
  const timeline = timelineOf(record, await readSources(store, stream, record));
  const { diverged } = await new Verifier(store).verify(stream);
  if (out.json) {
    await out.document(timeline === null ? unreadableDocument(record, diverged) : timelineDocument(timeline, diverged));
    return EXIT.done;
  }
  const width = Math.min(MAX_WIDTH, Math.max(MIN_WIDTH, out.columns ?? DEFAULT_WIDTH));
  await out.print(
    timeline === null
      ? unreadableText(record, diverged, out.style)
      : timelineText(timeline, diverged, { style: out.style, width, verbose: out.verbose }),
  );
  return EXIT.done;
}
