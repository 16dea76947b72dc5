import { copyFileSync, existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { queueList } from "#src/cli/queue-list.js";
import { queueResolve } from "#src/cli/queue-resolve.js";
import type { DeliveryState, QueuedDelivery } from "#src/store/queue.js";
import { openSqliteStore } from "#src/store/sqlite/store.js";
import { run } from "../support/cli.js";
import { delivery, deliveryId, queueIn } from "../support/deliveries.js";
import { sqliteOf } from "../support/golden.js";
import { alterSqlite } from "../support/ledgers.js";
import { runCommand } from "../support/run-command.js";
import { StoreChild } from "../support/store-child.js";
import { temporaryFolder } from "../support/store-fixtures.js";

let folder: ReturnType<typeof temporaryFolder>;
let path: string;

beforeEach(() => {
  folder = temporaryFolder();
  path = join(folder.path, "ledger.db");
});
afterEach(() => folder.remove());

const id = deliveryId;

async function put(...deliveries: readonly QueuedDelivery[]): Promise<void> {
  const store = await openSqliteStore(path, { mode: "write" });
  await queueIn(store).put(deliveries, false);
  await store.close();
}

async function kept(n: number): Promise<QueuedDelivery | undefined> {
  const store = await openSqliteStore(path, { mode: "read" });
  const [found] = await queueIn(store).deliveries({ prefix: id(n) });
  await store.close();
  return found;
}

function list(...argv: readonly string[]) {
  return runCommand(queueList, ["--store", `sqlite:${path}`, "queue", "list", ...argv]);
}

function resolve(...argv: readonly string[]) {
  return runCommand(queueResolve, ["--store", `sqlite:${path}`, "queue", "resolve", ...argv]);
}

async function documents(...argv: readonly string[]) {
  const { code, stdout } = await list("--json", ...argv);
  expect(code).toBe(0);
  return stdout
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line));
}

async function refusal(ran: Promise<{ readonly code: number; readonly stdout: string }>) {
  const { code, stdout } = await ran;
  return { code, error: JSON.parse(stdout).error.code };
}

describe("queue list", () => {
  it("should print a JSON line for each delivery, oldest first", async () => {
    await put(delivery(2, { state: "failed", run: "r-1", error: "410 Gone", attempts: 3 }), delivery(1));
    const rows = await documents();
    expect(rows.map((row) => row.id)).toEqual([id(1), id(2)]);
    expect(rows[1]).toEqual({
      ...delivery(2, { state: "failed", run: "r-1", error: "410 Gone", attempts: 3 }),
      dueAt: "2023-11-14T22:13:20.002Z",
      createdAt: "2023-11-14T22:13:20.002Z",
      updatedAt: "2023-11-14T22:13:20.002Z",
    });
  });

  it("should tell people what to do about those that nobody knows of", async () => {
    const now = Date.now();
    await put(
      delivery(1, { createdAt: now - 3 * 3_600_000, attempts: 2, error: "timeout" }),
      delivery(2, { state: "attempting", createdAt: now - 600_000, attempts: 1, lane: "chat/c-2" }),
    );
    const { code, stdout, stderr } = await list();
    expect(code).toBe(0);
    expect(stdout.split("\n").map((line) => line.trimEnd())).toEqual([
      "DELIVERY                    STATE       LANE              ATTEMPTS  AGE       ERROR",
      `${id(1)}  pending     chat/c-1          2         3 h       timeout`,
      `${id(2)}  unknown     chat/c-2          1         10 min`,
      "",
    ]);
    expect(stderr).toContain("1 of these may have been sent: hookledger queue resolve <id>");
    expect((await list("--quiet")).stderr).toBe("");
    expect((await list("--state", "pending")).stderr).toBe("");
  });

  it("should show those of a state, and so many", async () => {
    const states: readonly DeliveryState[] = ["pending", "sent", "pending", "attempting", "dropped"];
    await put(...states.map((state, n) => delivery(n, { state })));
    expect((await documents("--state", "pending")).map((row) => row.id)).toEqual([id(0), id(2)]);
    expect((await documents("--state", "unknown")).map((row) => row.id)).toEqual([id(3)]);
    expect(await documents("--state", "attempting")).toEqual([]);
    expect((await documents("--limit", "2")).map((row) => row.id)).toEqual([id(0), id(1)]);
    expect((await list("--state", "failed")).stderr).toBe("No delivery matches.\n");
    for (const wrong of [
      ["--state", "gone"],
      ["--limit", "0"],
    ]) {
      expect(await refusal(list("--json", ...wrong))).toEqual({ code: 2, error: "HL_USAGE" });
    }
  });

  it("should show all of them, however many there are", async () => {
    await put(...Array.from({ length: 700 }, (_, n) => delivery(n)));
    expect((await documents()).map((row) => row.id)).toEqual(Array.from({ length: 700 }, (_, n) => id(n)));
    expect((await documents("--limit", "300")).length).toBe(300);
    expect((await list()).stdout.match(/DELIVERY/g)).toHaveLength(1);
  });

  it("should let foreign text neither act on the terminal nor take another line", async () => {
    await put(delivery(1, { lane: "a\u001b[31m\nb", error: "\u202e\r" }));
    const { stdout } = await list();
    expect(stdout.replaceAll("\n", "")).not.toMatch(/[\p{Cc}\p{Cf}]/u);
    expect(stdout.trimEnd().split("\n")).toHaveLength(2);
    const json = await list("--json");
    expect(json.stdout.replaceAll("\n", "")).not.toMatch(/[\p{Cc}\p{Cf}]/u);
    expect(JSON.parse(json.stdout).lane).toBe("a\u001b[31m\nb");
    alterSqlite(path, (db) =>
      db.prepare("UPDATE deliveries SET created_at = 9e300, due_at = 'x', id = ?").run(`${id(1)}\n`),
    );
    const altered = await list();
    expect([altered.code, altered.stdout.trimEnd().split("\n")]).toEqual([0, expect.objectContaining({ length: 2 })]);
    expect((await documents())[0]).toMatchObject({ createdAt: null });
  });

  it("should create no ledger, and change no older one", async () => {
    expect(await refusal(list("--json"))).toEqual({ code: 6, error: "HL_STORE_MISSING" });
    expect(await refusal(resolve("--json", "01K", "--sent"))).toEqual({ code: 6, error: "HL_STORE_MISSING" });
    expect(existsSync(path)).toBe(false);
    copyFileSync(sqliteOf("0.1.0"), path);
    const before = readFileSync(path);
    const { code, stderr } = await list();
    expect([code, stderr]).toEqual([0, "The queue is empty.\n"]);
    expect(await refusal(resolve("--json", "01K", "--sent"))).toEqual({ code: 7, error: "HL_NOT_FOUND" });
    expect(readFileSync(path).equals(before)).toBe(true);
  });

  it("should say which stores keep a queue", async () => {
    const elsewhere = runCommand(queueList, ["--json", "--store", "memory:", "queue", "list"]);
    expect(await refusal(elsewhere)).toEqual({ code: 2, error: "HL_USAGE" });
  });
});

describe("queue resolve", () => {
  const OUTCOMES = [
    ["--sent", "sent", ["unknown"]],
    ["--retry", "pending", ["unknown", "pending", "failed"]],
    ["--drop", "dropped", ["unknown", "pending", "failed"]],
  ] as const;
  const STATES: readonly DeliveryState[] = ["pending", "unknown", "sent", "failed", "dropped"];

  it.each(OUTCOMES)(
    "should make what it may of a delivery with %s, and leave the others",
    async (flag, becomes, from) => {
      await put(...STATES.map((state, n) => delivery(n, { state, partsSent: 1, error: "timeout" })));
      for (const [n, state] of STATES.entries()) {
        const before = Date.now();
        if (from.some((one) => one === state)) {
          const { code, stdout } = await resolve("--json", id(n), flag);
          expect([code, JSON.parse(stdout)]).toEqual([0, { id: id(n), was: state, state: becomes }]);
          const now = await kept(n);
          expect(now).toMatchObject({ state: becomes, partsSent: 1, error: "timeout" });
          expect(now?.updatedAt).toBeGreaterThanOrEqual(before);
          expect((now?.dueAt ?? 0) >= before).toBe(flag === "--retry");
        } else {
          expect(await refusal(resolve("--json", id(n), flag))).toEqual({ code: 2, error: "HL_DELIVERY_STATE" });
          expect(await kept(n)).toEqual(delivery(n, { state, partsSent: 1, error: "timeout" }));
        }
      }
    },
  );

  it("should settle what a process that was killed had begun, and not what a living one has", async () => {
    await put(delivery(1), delivery(2));
    const sender = new StoreChild(["race", path]);
    await sender.said("raced");
    const attempted = await resolve(id(1), "--drop");
    expect(attempted.code).toBe(2);
    expect(attempted.stderr).toMatch(
      /is attempting: --drop changed nothing \(HL_DELIVERY_STATE\)\n.*Somebody is sending it/s,
    );
    await sender.kill();
    const { code, stdout } = await run(["--store", `sqlite:${path}`, "queue", "resolve", id(1), "--sent"], {
      cwd: folder.path,
    });
    expect([code, stdout]).toEqual([0, `${id(1)} was unknown, is sent\n`]);
    expect((await resolve(id(2), "--retry")).code).toBe(0);
    expect([(await kept(1))?.state, (await kept(2))?.state]).toEqual(["sent", "pending"]);
  });

  it("should take a unique prefix in either case, and say where there is none", async () => {
    await put(delivery(1), delivery(12), delivery(120));
    expect(await refusal(resolve("--json", id(12).slice(0, 24), "--drop"))).toEqual({
      code: 2,
      error: "HL_AMBIGUOUS_ID",
    });
    expect(await refusal(resolve("--json", "01KZ", "--drop"))).toEqual({ code: 7, error: "HL_NOT_FOUND" });
    expect(await refusal(resolve("--json", id(7), "--drop"))).toEqual({ code: 7, error: "HL_NOT_FOUND" });
    expect(await refusal(resolve("--json", "", "--drop"))).toEqual({ code: 2, error: "HL_USAGE" });
    expect(await refusal(resolve("--json", "%", "--drop"))).toEqual({ code: 7, error: "HL_NOT_FOUND" });
    expect((await resolve(id(120).slice(0, 25).toLowerCase(), "--drop")).code).toBe(0);
    expect((await kept(120))?.state).toBe("dropped");
    expect((await kept(12))?.state).toBe("pending");
  });

  it("should be told exactly one thing", async () => {
    await put(delivery(1, { state: "unknown" }));
    for (const flags of [[], ["--sent", "--drop"], ["--sent", "--drop", "--retry"]]) {
      expect(await refusal(resolve("--json", id(1), ...flags))).toEqual({ code: 2, error: "HL_USAGE" });
    }
    expect((await kept(1))?.state).toBe("unknown");
  });
});
