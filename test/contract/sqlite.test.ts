import { join } from "node:path";
import { openSqliteStore } from "#src/store/sqlite/store.js";
import { storeContract } from "./store-contract.js";

storeContract("sqlite", (folder) => openSqliteStore(join(folder, "ledger.db"), { mode: "write" }));
