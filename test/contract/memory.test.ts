import { openMemoryStore } from "#src/store/memory.js";
import { garbageContract } from "./garbage-contract.js";
import { storeContract } from "./store-contract.js";

storeContract("memory", async () => openMemoryStore());
garbageContract("memory", async () => openMemoryStore());
