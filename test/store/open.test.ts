import { existsSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openStore } from "#src/store/open.js";
import { opening, temporaryFolder } from "../support/store-fixtures.js";

describe("openStore", () => {
  let folder: ReturnType<typeof temporaryFolder>;

  beforeEach(() => {
    folder = temporaryFolder();
  });
  afterEach(() => folder.remove());

  it("should open a new ledger in memory each time", async () => {
    const one = await openStore("memory:", { mode: "write" });
    await one.append(opening(1));
    const other = await openStore("memory:", { mode: "read" });
    expect(await other.readStream(opening(1).stream)).toBeNull();
    expect(other.writer).not.toBe(one.writer);
    await Promise.all([one.close(), other.close()]);
  });

  it("should open a file by its path", async () => {
    const url = `sqlite:${join(folder.path, "a #1 %20?", "ledger.db")}`;
    const store = await openStore(url, { mode: "write" });
    expect(store.url).toBe(url);
    expect(existsSync(join(folder.path, "a #1 %20?", "ledger.db"))).toBe(true);
    await store.close();
  });

  it("should say which URLs there are", async () => {
    for (const url of [
      "",
      "ledger.db",
      "sqlite:",
      "sqlite:a\0b",
      "sqlite: a",
      "postgres://host/db",
      "memory:x",
      "MEMORY:",
    ]) {
      await expect(openStore(url, { mode: "write" })).rejects.toMatchObject({
        code: "HL_STORE_URL",
        hint: expect.any(String),
      });
    }
  });

  it("should reach for a server, and repeat no password when there is none", async () => {
    for (const scheme of ["esdb", "esdb+discover", "kurrentdb", "kurrentdb+discover"]) {
      const url = `${scheme}://admin:changeit@127.0.0.1:1?tls=false&defaultDeadline=500&maxDiscoverAttempts=1`;
      const refused = openStore(url, { mode: "read" });
      await expect(refused).rejects.toMatchObject({
        code: "HL_STORE_UNAVAILABLE",
        message: expect.stringMatching(/^(?!.*changeit).*127\.0\.0\.1:1/),
        hint: expect.any(String),
      });
    }
  });
});
