/** Which dispatches a command speaks of: ids or unique prefixes of them, a session, or all. */
import { HookledgerError } from "../errors.js";
import type { EventStore, StreamEvents, StreamName } from "../store/port.js";
import { isUlid } from "../store/ulid.js";
import type { CommandCall, OptionSpec } from "./command.js";

export type Selection =
  | { readonly kind: "ids"; readonly ids: readonly string[] }
  /** null: dispatches without a session. */
  | { readonly kind: "session"; readonly session: string | null }
  | { readonly kind: "all" };

export const SELECTION_OPTIONS: readonly OptionSpec[] = [
  { flags: "--session <id>", description: 'the dispatches of a session; "" for those without one' },
  { flags: "--all", description: "every dispatch in the ledger" },
];

/** Throws HL_USAGE unless exactly one way of selecting is used. */
export function selectionOf(call: CommandCall): Selection {
  const session = call.text("session");
  const ways = [call.args.length > 0, session !== undefined, call.flag("all")].filter(Boolean).length;
  if (ways !== 1) {
    throw new HookledgerError(
      "HL_USAGE",
      ways === 0 ? "no dispatch named" : "ids, --session and --all exclude each other",
      { hint: "Give ids (a unique prefix will do), or --session <id>, or --all." },
    );
  }
  if (session !== undefined) return { kind: "session", session: session === "" ? null : session };
  return call.args.length > 0 ? { kind: "ids", ids: call.args } : { kind: "all" };
}

/**
 * Whole streams: ids in the order given, everything else newest first. Throws HL_NOT_FOUND (an unknown id, a session without a dispatch)
 * and HL_AMBIGUOUS_ID, for ids before the first stream.
 */
export async function* selectedStreams(store: EventStore, selection: Selection): AsyncGenerator<StreamEvents> {
  if (selection.kind === "ids") {
    const names = new Set<StreamName>();
    for (const id of selection.ids) names.add(await streamNamed(store, id));
    for (const name of names) {
      const stream = await store.readStream(name);
      if (stream !== null) yield stream;
    }
    return;
  }
  let found = false;
  const filter = selection.kind === "session" ? { session: selection.session } : {};
  for await (const page of store.readStreams({ order: "newest", ...filter })) {
    found = true;
    yield* page;
  }
  if (!found && selection.kind === "session") throw unknownSession(selection.session);
}

/** The stream whose dispatch id is, or alone begins with, `id`. Throws HL_NOT_FOUND and HL_AMBIGUOUS_ID. */
export async function streamNamed(store: EventStore, id: string): Promise<StreamName> {
  const prefix = id.toUpperCase();
  if (prefix === "") throw new HookledgerError("HL_USAGE", "a dispatch id is empty");
  const found = await firstTwo(store, prefix);
  const [first, second] = found;
  if (first === undefined) {
    throw new HookledgerError("HL_NOT_FOUND", `no dispatch ${isUlid(prefix) ? "has the id" : "begins with"} ${id}`, {
      hint: "hookledger list shows what there is.",
    });
  }
  if (second === undefined) return first;
  const examples = found.map((name) => dispatchIdOf(name)).join(" and ");
  throw new HookledgerError("HL_AMBIGUOUS_ID", `several dispatches begin with ${id}, such as ${examples}`, {
    hint: "Give more characters.",
  });
}

/** Throws HL_NOT_FOUND where no dispatch belongs to the session. */
export async function requireSession(store: EventStore, session: string | null): Promise<void> {
  for await (const page of store.readStreams({ order: "newest", session })) if (page.length > 0) return;
  throw unknownSession(session);
}

export function unknownSession(session: string | null): HookledgerError {
  return new HookledgerError(
    "HL_NOT_FOUND",
    session === null ? "no dispatch is without a session" : `no dispatch belongs to session ${session}`,
  );
}

export function dispatchIdOf(stream: StreamName): string {
  return stream.slice("hookdispatch-".length);
}

async function firstTwo(store: EventStore, prefix: string): Promise<readonly StreamName[]> {
  const names: StreamName[] = [];
  for await (const page of store.readStreams({ order: "oldest", prefix })) {
    names.push(...page.map(({ stream }) => stream));
    if (names.length >= 2) break;
  }
  return names.slice(0, 2);
}
