import { join } from "node:path";
import { openSqliteStore } from "#src/store/sqlite/store.js";
import { fencing } from "./fencing.js";

fencing("sqlite", (folder) => openSqliteStore(join(folder, "ledger.db"), { mode: "write" }));
