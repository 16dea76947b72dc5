import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Database from "better-sqlite3";
import { describe, expect, it, onTestFinished } from "vitest";
import { persistAssistantTurn } from "#src/messages/turn/assistant.js";
import { SqliteTranscripts } from "#src/messages/turn/sqlite-transcripts.js";
import { UserTurnRecorder } from "#src/messages/turn/user-turn.js";
import { ANSWER, MESSAGE, SESSION } from "./transcripts.js";

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), "hookledger-transcripts-"));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

function open(path = join(folder(), "private", "transcripts.db")): SqliteTranscripts {
  const transcripts = SqliteTranscripts.open(path);
  onTestFinished(() => transcripts.close());
  return transcripts;
}

const replaced = expect.objectContaining({ code: "HL_TRANSCRIPT_REPLACED" });

describe("SqliteTranscripts", () => {
  it("should make its file 0600 in a folder 0700", async () => {
    const path = join(folder(), "private", "t.db");
    const opened = open(path);
    await opened.append(opened.start(SESSION), MESSAGE, "u-1");
    const mode = (of: string) => statSync(of).mode & 0o777;
    expect([mode(path), mode(join(path, "..")), mode(`${path}-wal`)]).toEqual([0o600, 0o700, 0o600]);
  });

  it("should give the boundary of a run: generation and maxSeq, null where there is nothing yet", async () => {
    const transcripts = open();
    const before = transcripts.start(SESSION);
    expect(before).toEqual({ ...SESSION, storePath: transcripts.path, generation: null, maxSeq: null });
    const { target } = await transcripts.append(before, MESSAGE, "u-1");
    await transcripts.append(before, ANSWER, "a-1");
    expect(transcripts.start(SESSION)).toEqual({ ...target, generation: expect.any(String), maxSeq: 2 });
    expect(transcripts.read(target)).toEqual([MESSAGE, ANSWER]);
    expect(transcripts.read(target, 1)).toEqual([ANSWER]);
  });

  it("should append once a key, and give the receipt of what stands there", async () => {
    const transcripts = open();
    const start = transcripts.start(SESSION);
    const receipt = await transcripts.append(start, MESSAGE, "u-1");
    expect(receipt).toEqual({
      target: { ...SESSION, storePath: transcripts.path, generation: expect.any(String) },
      messageId: "m-1",
      idempotencyKey: "u-1",
      projectionAnchor: 1,
    });
    expect(await transcripts.append(start, { ...MESSAGE, id: "m-2" }, "u-1")).toEqual(receipt);
    expect(transcripts.read(receipt.target)).toEqual([MESSAGE]);
    expect(transcripts.holds(receipt)).toBe(true);
  });

  it("should refuse whoever still has a session that was replaced, whatever receipt there is", async () => {
    const transcripts = open();
    const before = transcripts.start(SESSION);
    const receipt = await transcripts.append(before, MESSAGE, "u-1");
    const next = transcripts.replace({ ...SESSION, sessionId: "session-2" });
    expect(transcripts.holds(receipt)).toBe(false);
    for (const target of [
      before,
      receipt.target,
      { ...next, generation: null },
      { ...next, storePath: "/elsewhere" },
    ]) {
      await expect(transcripts.append(target, ANSWER, "a-1")).rejects.toEqual(replaced);
    }
    await transcripts.append(next, ANSWER, "a-1");
    expect([transcripts.read(receipt.target), transcripts.read(next)]).toEqual([[MESSAGE], [ANSWER]]);
    expect(transcripts.start(SESSION)).toMatchObject({ generation: null });
  });

  it("should not take a receipt of a replaced session for a right to write to the one that replaced it", async () => {
    const transcripts = open();
    const before = transcripts.start(SESSION);
    const receipt = await transcripts.append(before, ANSWER, "a-1");
    const next = transcripts.replace(SESSION);
    const turn = { transcripts, target: before, message: ANSWER, idempotencyKey: "a-1" };
    expect(await persistAssistantTurn({ ...turn, receipt })).toBe(receipt);
    await expect(persistAssistantTurn(turn)).rejects.toEqual(replaced);
    expect(transcripts.read(next)).toEqual([]);
  });

  it("should keep one user turn where an input comes again in another process", async () => {
    const path = join(folder(), "t.db");
    for (let round = 0; round < 2; round++) {
      const transcripts = SqliteTranscripts.open(path);
      const target = transcripts.start(SESSION);
      const recorder = new UserTurnRecorder({ transcripts, target, message: MESSAGE, idempotencyKey: "u-1" });
      expect(await recorder.persist()).toMatchObject({ messageId: "m-1" });
      expect(transcripts.start(SESSION).maxSeq).toBe(1);
      transcripts.close();
    }
  });

  it("should write what has no JSON form as such, and never fail a turn over it", async () => {
    const transcripts = open();
    const cyclic: { self?: unknown } = {};
    cyclic.self = cyclic;
    const { target } = await transcripts.append(
      transcripts.start(SESSION),
      { ...ANSWER, content: [1n, cyclic] },
      "a-1",
    );
    expect(transcripts.read(target)[0]?.content).toEqual([
      { $unrecordable: "bigint" },
      { self: { $unrecordable: "cycle" } },
    ]);
  });

  it("should leave a file of somebody else's as it is", () => {
    const text = join(folder(), "notes.txt");
    writeFileSync(text, "not a database");
    const other = join(folder(), "other.db");
    new Database(other).exec("CREATE TABLE t (a)").close();
    for (const path of [text, other]) {
      const before = readFileSync(path);
      expect(() => SqliteTranscripts.open(path)).toThrow(expect.objectContaining({ code: "HL_STORE_FOREIGN" }));
      expect(readFileSync(path)).toEqual(before);
    }
  });

  it("should say that a message is damaged, and not hand it out", async () => {
    const path = join(folder(), "t.db");
    const transcripts = open(path);
    const { target } = await transcripts.append(transcripts.start(SESSION), MESSAGE, "u-1");
    for (const text of ["{}", "[1]", "null", '{"id":1,"role":"user","content":""}']) {
      new Database(path).exec(`UPDATE messages SET message = '${text}'`).close();
      expect(() => transcripts.read(target)).toThrow(expect.objectContaining({ code: "HL_STORE_CORRUPT" }));
    }
  });

  it("should refuse a newer format, and calls after close", async () => {
    const path = join(folder(), "t.db");
    SqliteTranscripts.open(path).close();
    const transcripts = open(path);
    transcripts.close();
    expect(() => transcripts.start(SESSION)).toThrow(expect.objectContaining({ code: "HL_STORE_CLOSED" }));
    const db = new Database(path);
    db.pragma("user_version = 9");
    db.close();
    expect(() => SqliteTranscripts.open(path)).toThrow(expect.objectContaining({ code: "HL_STORE_VERSION" }));
  });
});
