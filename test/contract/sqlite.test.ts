import { join } from "node:path";
import Database from "better-sqlite3";
import { openSqliteStore } from "#src/store/sqlite/store.js";
import { garbageContract } from "./garbage-contract.js";
import { storeContract } from "./store-contract.js";

function open(folder: string) {
  return openSqliteStore(join(folder, "ledger.db"), { mode: "write" });
}

storeContract("sqlite", open, {
  spoilChunks(how, folder) {
    const db = new Database(join(folder, "ledger.db"));
    const { changes } =
      how === "remove"
        ? db.prepare("DELETE FROM chunks").run()
        : db.prepare("UPDATE chunks SET bytes = CAST(substr(bytes, 1, length(bytes) - 1) || 'x' AS BLOB)").run();
    db.close();
    return changes;
  },
});

garbageContract("sqlite", open);
