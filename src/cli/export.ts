import { realpathSync } from "node:fs";
import { HookledgerError } from "../errors.js";
import type { EventStore, StreamName } from "../store/port.js";
import { type Exported, type ExportSelection, exportLedger } from "../transfer/export.js";
import type { CommandCall, CommandFile } from "./command.js";
import { EXIT } from "./exit.js";
import type { Output } from "./output.js";
import { withLedger } from "./reading.js";
import { bundlePath, lackingLine, refusalLines, refusalRows } from "./refusals.js";
import { requireSession, streamNamed } from "./select.js";
import { foreign } from "./text.js";

export const exportCommand: CommandFile = {
  name: "export",
  summary:
    "writes an evidence bundle: dispatches, their payloads and configurations in one file that verifies by itself",
  args: "<file> [id...]",
  options: [
    { flags: "--session <id>", description: 'only of this session; "" for those without one' },
    { flags: "--since <time>", description: "only begun then or later: ISO 8601, or a duration before now (2h, 7d)" },
    { flags: "--until <time>", description: "only begun before then" },
  ],
  examples: [
    { command: "hookledger export evidence.hlb", does: "the whole ledger; again: what is new" },
    { command: "hookledger export incident.hlb --session s-42 --since 2026-02-28", does: "a session, from a day on" },
    { command: "hookledger verify --offline evidence.hlb", does: "what whoever gets it does" },
  ],
  async run(call) {
    const path = bundlePath(call.args[0]);
    const query = queryOf(call);
    if (isItself(call.store, path)) {
      throw new HookledgerError("HL_USAGE", `${path} is the bundle that is to be exported`, {
        hint: "Name another file.",
      });
    }
    const exported = await withLedger(call, async (store) => {
      const selection = await selectionIn(store, call.args.slice(1), query);
      return exportLedger(store, path, {
        selection,
        now: Date.now(),
        onProgress: ({ added, grown, kept }) => call.out.progress(`${added + grown} exported, ${kept} there already`),
      });
    });
    const { refused, bundle } = exported;
    const whole = refused.length + bundle.missing + bundle.damaged === 0;
    await print(exported, whole, path, call.out);
    return whole ? EXIT.done : EXIT.divergence;
  },
};

function isItself(url: string, path: string): boolean {
  if (!url.startsWith("bundle:")) return false;
  try {
    return realpathSync(url.slice("bundle:".length)) === realpathSync(path);
  } catch {
    return false;
  }
}

function queryOf(call: CommandCall): Omit<ExportSelection, "streams"> {
  const now = Date.now();
  const session = call.text("session");
  const since = call.moment("since", now);
  const until = call.moment("until", now);
  if (call.args.length > 1 && (session ?? since ?? until) !== undefined) {
    throw new HookledgerError("HL_USAGE", "ids exclude --session, --since and --until");
  }
  return {
    ...(session === undefined ? {} : { session: session === "" ? null : session }),
    ...(since === undefined ? {} : { since }),
    ...(until === undefined ? {} : { until }),
  };
}

/** Before a file is made: does the ledger have what is asked for? Throws HL_NOT_FOUND and HL_AMBIGUOUS_ID. */
async function selectionIn(
  store: EventStore,
  ids: readonly string[],
  query: Omit<ExportSelection, "streams">,
): Promise<ExportSelection> {
  if (query.session !== undefined) await requireSession(store, query.session);
  if (ids.length === 0) return query;
  const streams: StreamName[] = [];
  for (const id of ids) streams.push(await streamNamed(store, id));
  return { streams: [...new Set(streams)] };
}

async function print(exported: Exported, whole: boolean, path: string, out: Output): Promise<void> {
  const { added, grown, kept, refused, bundle } = exported;
  const { digest, streams, events, payloads, missing, damaged } = bundle;
  if (out.json) {
    const counts = { added, grown, kept, refused: refusalRows(refused) };
    await out.document({ file: path, digest, ...counts, streams, events, payloads, missing, damaged });
    return;
  }
  const { style } = out;
  const title = whole ? style.bold(style.green("exported")) : style.bold(style.red("exported in part"));
  await out.print(
    [
      `${title}  ${added} added, ${grown} grown, ${kept} there already; ${foreign(path)} has ${streams}`,
      `${style.dim("digest")}    ${foreign(digest ?? "")}`,
      ...lackingLine({ missing, damaged }, style),
      ...refusalLines(refused, style),
    ].join("\n"),
  );
}
