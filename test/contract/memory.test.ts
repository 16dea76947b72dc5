import { openMemoryStore } from "#src/store/memory.js";
import { storeContract } from "./store-contract.js";

storeContract("memory", async () => openMemoryStore());
