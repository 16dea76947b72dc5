// What the ledger can tell once everybody is gone: the command line, as a user types it, on the session that was played.
import { readdirSync, readFileSync } from "node:fs";
import { cp } from "node:fs/promises";
import { join } from "node:path";
import Database from "better-sqlite3";
import { check, facts, note, proved, scene, typed } from "./story.mjs";

export async function proveIt(stage, { key, results }) {
  const [redacted, plan, gate, , , crash] = results;
  await scene(
    "7  What the ledger tells",
    "The session is over and every subscriber is stopped. From here on nobody can be asked; there is",
    "only the ledger.",
  );
  await typed(`export HOOKLEDGER_STORE=${shellWord(stage.store)}`);

  const listed = await command(stage, ["list"]);
  check(
    "list has the session, newest first",
    listed.map(({ dispatchId }) => dispatchId),
    results.map(({ dispatchId }) => dispatchId).toReversed(),
  );
  for (const result of [redacted, plan, gate]) {
    const [shown] = await command(stage, ["show", result.dispatchId]);
    check("show verifies what it shows", [shown.verified, shown.decision], [true, result.decision]);
  }
  await replay(stage, results);
  const [verified] = await command(stage, ["verify", "--all"]);
  check(
    "the whole ledger verifies",
    [verified.checked, verified.ok, verified.diverged],
    [results.length, results.length, []],
  );
  await proved(`${results.length} records, ${results.length} replays, no difference`);

  const records = await command(stage, ["audit", "export", "--observe-errors"]);
  check(
    "the audit has the one failed observer",
    records.map(({ dispatchId, subscriber, category }) => [dispatchId, subscriber, category]),
    [[crash.dispatchId, "metrics", "PROCESS_CRASHED"]],
  );
  await tamper(stage, gate);
  await search(stage, key);
}

async function replay(stage, results) {
  const [swap] = results.slice(-1);
  await command(stage, ["replay", swap.dispatchId]);
  const replayed = await stage.read(["replay", "--session", "demo"]);
  for (const result of results) {
    const again = replayed.find(({ dispatchId }) => dispatchId === result.dispatchId);
    check("replay comes to what the harness was told", verdictOf(again ?? {}), verdictOf(result));
  }
  await proved(
    "this one and the others (replay --session demo) come out as the harness was told, and nobody was called",
  );
}

async function tamper(stage, gate) {
  await scene("8  Somebody edits the ledger", "In a copy of it, plain SQL turns the gate's denial into an approval:");
  const copy = join(stage.folder, "tampered");
  await cp(join(stage.folder, "ledger"), copy, { recursive: true });
  const sql = [
    `UPDATE events SET data = replace(data, '"deny"', '"allow"')`,
    `WHERE type = 'decided' AND stream = 'hookdispatch-${gate.dispatchId}'`,
  ];
  await facts(sql.map((line) => [line]));
  const db = new Database(join(copy, "ledger.db"));
  check("the edit changes one event", db.prepare(sql.join(" ")).run().changes, 1);
  db.close();

  const [found] = await command(stage, ["verify", "--all", "--store", `sqlite:${join(copy, "ledger.db")}`], 5);
  check(
    "verify names the edited event, and no other",
    found.diverged.map(({ dispatchId, revision }) => [dispatchId, revision]),
    [[gate.dispatchId, gate.events - 1]],
  );
  await proved("exit code 5, and the edited event is named: the gate's silence can only come to a denial");
  await note(
    "   verify proves a ledger against itself. It cannot see a record that was rewritten whole and consistently;",
    "   keep a copy where the ledger's writer cannot reach it.",
  );
}

/** Payloads lie in the ledger as base64, too, so a key has four spellings. The name beside it shows that the search finds things. */
async function search(stage, key) {
  await scene(
    "9  Is the key anywhere?",
    "`settings.redact` was to keep it out of everything recorded. Look for it in every file of the",
    "ledger, as text and as base64.",
  );
  const contents = filesOf(join(stage.folder, "ledger")).map((file) => readFileSync(file));
  const holds = (text) => contents.some((bytes) => spellings(text).some((spelling) => bytes.includes(spelling)));
  const size = contents.reduce((sum, bytes) => sum + bytes.length, 0);
  check("the search finds what is there", holds("IMPORT_API_KEY="), true);
  check("the key is nowhere in the ledger", holds(key), false);
  await proved(`in ${Math.ceil(size / 1024)} KiB, IMPORT_API_KEY= is found; the key that stood behind it is not`);
}

function filesOf(folder) {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
}

/** The text itself, and what base64 makes of it at each of the three places where it can start. */
function spellings(text) {
  const encoded = [0, 1, 2].map((offset) => {
    const whole = Buffer.from("\0".repeat(offset) + text)
      .toString("base64")
      .replace(/=+$/, "");
    // The first characters depend on what stands before the text, the last one on what follows.
    return whole.slice(offset === 0 ? 0 : offset + 1, -1);
  });
  return [text, ...encoded];
}

/** Types it, runs it, and reads the same as JSON; throws Untrue if it ends with another exit code. */
async function command(stage, args, exitCode = 0) {
  await typed(["npx hookledger", ...args.map(shellWord)].join(" "));
  const [code, documents] = await Promise.all([stage.run(args), stage.read(args)]);
  check(`hookledger ${args.join(" ")} ends with its exit code`, code, exitCode);
  return documents;
}

const verdictOf = ({ status, decision, decidedBy, allowed, abortCause, planDecisions, hookErrors }) => ({
  status,
  decision,
  decidedBy,
  allowed,
  abortCause,
  planDecisions,
  hookErrors,
});

export function shellWord(text) {
  return /^[\w./:@%+=,-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
