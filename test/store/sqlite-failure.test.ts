import { describe, expect, it } from "vitest";
import { storeError } from "#src/store/sqlite/failure.js";

function sqliteError(code: string): Error {
  return Object.assign(new Error("said SQLite"), { code });
}

describe("an error of SQLite", () => {
  it.each([
    ["SQLITE_BUSY", "HL_STORE_LOCKED"],
    ["SQLITE_BUSY_SNAPSHOT", "HL_STORE_LOCKED"],
    ["SQLITE_CORRUPT_INDEX", "HL_STORE_CORRUPT"],
    ["SQLITE_NOTADB", "HL_STORE_FOREIGN"],
    ["SQLITE_READONLY_DBMOVED", "HL_STORE_READONLY"],
    ["SQLITE_FULL", "HL_STORE_FULL"],
    ["SQLITE_IOERR_SHMSIZE", "HL_STORE_FULL"],
    ["SQLITE_IOERR_FSYNC", "HL_STORE_UNAVAILABLE"],
    ["SQLITE_SOMETHING_NEW", "HL_STORE_UNAVAILABLE"],
  ])("should be told in our terms: %s", (sqlite, code) => {
    expect(storeError(sqliteError(sqlite), "ledger.db")).toMatchObject({ code });
  });

  it("should be what it is where it is ours already", () => {
    const ours = storeError(sqliteError("SQLITE_FULL"), "ledger.db");
    expect(storeError(ours, "another.db")).toBe(ours);
  });
});
