// A conversation that is dispatched anew with every turn, a little longer each time, and redacted on its way to the model.
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import { createKernel, openStore, payloadFromView } from "hookledger";
import { folder } from "./fixtures.mjs";
import { heading, row } from "./measure.mjs";

const TURNS = 200;
const MB = 1_000_000;
/** Bytes of what is said in two turns: a question and an answer, the result of a tool and an answer; 10 kB together, as it happens. */
const SAID = [400, 1500, 7300, 800];
const SECRET = "hunter2-hunter2-hunter2";
/** Turns whose user gives a secret away. */
const LEAKS = new Set([3, 57, 141]);

export async function archived() {
  heading(
    `A session of ${TURNS} turns: pre-model-call messages grow to 1 MB, a transform redacts ${LEAKS.size} of them; SQLite`,
    "sizes: contents of the archive's rows, and the pages they take (dbstat), against each distinct message once, as it came and as it was redacted; CPU: all threads of the process during a dispatch, less the time in the handler, after a warm-up of 60 turns in another ledger; written: what the process hands to the system (/proc/self/io)",
    "system prompts or early messages that change with every turn, images, a subscriber in another process, the disk's own write amplification; messages are random words, which share nothing by chance",
  );
  await session(60);
  report(await session(TURNS));
}

/** Dispatches a conversation turn by turn, and says what each turn cost and what was kept in the end. */
async function session(turnCount) {
  const path = folder();
  const config = join(path, "agent.hcl");
  writeFileSync(
    config,
    `required_providers {\n  scrubber = { source = "host" }\n}\nhook "pre-model-call" {\n  provider = "scrubber"\n  mode     = "transform"\n}\n`,
  );
  const file = join(path, "ledger.db");
  let handlerMs = 0;
  const scrubber = {
    "pre-model-call": {
      transform(payload) {
        const start = performance.now();
        const messages = payload.messages.map(scrubbed);
        handlerMs += performance.now() - start;
        return { ...payload, messages };
      },
    },
  };
  const store = await openStore(`sqlite:${file}`, { mode: "write" });
  const kernel = await createKernel({ config, store, host: { scrubber } });
  const unique = new Unique();
  const sizes = new Database(file, { readonly: true });
  const turns = [];
  const messages = [];
  for (let turn = 1; turn <= turnCount; turn++) {
    for (const message of exchange(turn)) {
      messages.push(message);
      unique.add(message);
      unique.add(scrubbed(message));
    }
    const view = { preModelCall: { messages, model: { provider: "acme", id: "large-1" } } };
    const bytes = payloadFromView(view).bytes.byteLength;
    handlerMs = 0;
    const before = { written: writtenBytes(), contents: contentsOf(sizes), cpu: process.cpuUsage() };
    const result = await kernel.dispatch(view, { session: "session-1", turn: `turn-${turn}` });
    const cpu = process.cpuUsage(before.cpu);
    const isRedacted = result.payload?.ref.size !== bytes;
    if (!result.allowed || isRedacted !== turn >= Math.min(...LEAKS))
      throw new Error("the transform did not do its work");
    turns.push({
      bytes,
      cpuMs: (cpu.user + cpu.system) / 1000 - handlerMs,
      written: writtenBytes() - before.written,
      contents: contentsOf(sizes) - before.contents,
    });
  }
  await kernel.close();
  await store.close();
  const kept = {
    unique: unique.bytes,
    turns,
    pages: pagesOf(sizes),
    contents: archiveOf(sizes),
    all: contentsOf(sizes),
  };
  sizes.close();
  return kept;
}

function report({ unique, turns, pages, contents, all }) {
  const times = (bytes) => `${(bytes / unique).toFixed(2)} ×`;
  const onDisk = Object.values(pages).reduce((total, bytes) => total + bytes, 0);
  row("dispatched in all", megabytes(sum(turns, "bytes")), `unique content ${megabytes(unique)}`);
  row("archive", times(contents), "roots, nodes and leaves; target ≤ 1.6 ×");
  row("archive and events", times(all), "target ≤ 3 ×");
  row(
    "archive, pages of the file",
    times(pages.payloads + pages.chunks),
    "with keys, their index and room left in pages",
  );
  row("the whole file", times(onDisk));
  const [early, late] = [turns.slice(19, 39), turns.slice(-20)];
  row("recorded a turn, turns 20 to 39", kilobytes(mean(early, "contents")), "archive and events");
  row("recorded a turn, the last 20", kilobytes(mean(late, "contents")));
  row(
    "  slope from turn 20 on",
    `${slope(turns.slice(19), "contents").toFixed(1)} B a turn`,
    "the payload grows by 5 kB a turn",
  );
  if (late.every(({ written }) => written > 0)) {
    row("written a turn, turns 20 to 39", kilobytes(median(early, "written")), "median; whole pages of the log");
    row("written a turn, the last 20", kilobytes(median(late, "written")), "each key is on another page of its index");
  }
  const written = sum(turns, "written");
  if (written > 0) row("written in all", megabytes(written), "copying the log back to the file too");
  row("own CPU", `${cpuOf(turns)} ms/MB`, "of payload; target ≤ 20 ms/MB");
  row("own CPU, the last 20 turns", `${cpuOf(late)} ms/MB`);
}

function cpuOf(turns) {
  return (sum(turns, "cpuMs") / (sum(turns, "bytes") / MB)).toFixed(1);
}

/** What a user and a model say in one turn, deterministic. */
function exchange(turn) {
  const [asked, answered] = turn % 2 === 1 ? SAID.slice(0, 2) : SAID.slice(2);
  const said = words(`${turn}/user`, asked);
  return [
    text("ROLE_USER", LEAKS.has(turn) ? `${said.slice(0, 300)} ${SECRET} ${said.slice(300)}` : said, `u-${turn}`),
    text("ROLE_ASSISTANT", words(`${turn}/assistant`, answered), `a-${turn}`),
  ];
}

function text(role, content, id) {
  return { role, content: [{ text: { text: content } }], id };
}

function words(seed, length) {
  let text = "";
  for (let i = 0; text.length < length; i++) {
    const digest = createHash("sha256").update(`${seed}/${i}`).digest("hex");
    text += digest.replace(/(.{5})/g, "$1 ");
  }
  return text.slice(0, length);
}

function scrubbed(message) {
  const isLeak = message.content.some((block) => block.text?.text.includes(SECRET));
  if (!isLeak) return message;
  const content = message.content.map(({ text }) => ({ text: { text: text.text.replaceAll(SECRET, "[removed]") } }));
  return { ...message, content };
}

/** Bytes of messages, each counted once. */
class Unique {
  bytes = 0;
  #seen = new Set();

  add(message) {
    const encoded = payloadFromView({ preModelCall: { messages: [message] } }).bytes;
    const key = Buffer.from(encoded).toString("latin1");
    if (this.#seen.has(key)) return;
    this.#seen.add(key);
    this.bytes += encoded.byteLength;
  }
}

function contentsOf(db) {
  const events = db.prepare("SELECT total(length(data) + length(metadata)) FROM events").pluck().get();
  return archiveOf(db) + events;
}

function archiveOf(db) {
  return ["payloads", "chunks"].reduce(
    (sum, table) => sum + db.prepare(`SELECT total(length(bytes)) FROM ${table}`).pluck().get(),
    0,
  );
}

/** Bytes of pages by table, its indexes with it. */
function pagesOf(db) {
  const sizes = db.prepare("SELECT name, sum(pgsize) FROM dbstat GROUP BY name").raw().all();
  const pages = {};
  for (const [name, bytes] of sizes) {
    const table = db.prepare("SELECT tbl_name FROM sqlite_schema WHERE name = ?").pluck().get(name) ?? "schema";
    pages[table] = (pages[table] ?? 0) + bytes;
  }
  return pages;
}

/** 0 where the system does not say. */
function writtenBytes() {
  try {
    return Number(/^wchar: (\d+)$/m.exec(readFileSync("/proc/self/io", "latin1"))?.[1] ?? 0);
  } catch {
    return 0;
  }
}

function sum(rows, key) {
  return rows.reduce((total, row) => total + row[key], 0);
}

function mean(rows, key) {
  return sum(rows, key) / rows.length;
}

function median(rows, key) {
  const sorted = rows.map((row) => row[key]).sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)];
}

/** Of the line that fits best. */
function slope(rows, key) {
  const middle = (rows.length - 1) / 2;
  const average = mean(rows, key);
  const over = rows.reduce((total, row, i) => total + (i - middle) * (row[key] - average), 0);
  return over / rows.reduce((total, _, i) => total + (i - middle) ** 2, 0);
}

function megabytes(bytes) {
  return `${(bytes / MB).toFixed(1)} MB`;
}

function kilobytes(bytes) {
  return `${(bytes / 1000).toFixed(1)} kB`;
}
