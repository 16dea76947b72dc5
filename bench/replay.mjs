// Replaying and verifying a ledger, on one core.
import { join } from "node:path";
import { createKernel, openStore, replayStream, verifyAll } from "hookledger";
import { fiveHooks, folder, handlers, toolCall } from "./fixtures.mjs";
import { heading, row } from "./measure.mjs";

const DISPATCHES = 30_000;

export async function replaying() {
  heading(
    `Replay and verify ${DISPATCHES.toLocaleString("en")} dispatches of 12 events, one thread`,
    "reading, decoding, folding; verify also seals every event again and digests every payload",
    "a cold page cache, ledgers larger than memory, payloads over 4 KiB",
  );
  const path = folder();
  const config = fiveHooks(path, "host");
  for (const [url, target] of [
    ["memory:", 40_000],
    [`sqlite:${join(path, "ledger.db")}`, 15_000],
  ]) {
    const name = url.slice(0, url.indexOf(":"));
    const store = await openStore(url, { mode: "write" });
    const kernel = await createKernel({ config, store, host: { five: handlers } });
    for (let i = 0; i < DISPATCHES; i += 100) {
      await Promise.all(Array.from({ length: 100 }, () => kernel.dispatch(toolCall, { session: "session-1" })));
    }
    await kernel.close();
    row(`replay from ${name}`, rate(await bestOf(() => replayAll(store))), `target ≥ ${target.toLocaleString("en")}/s`);
    row(`verify from ${name}`, rate(await bestOf(() => verify(store))), "target ≥ 10,000/s");
    await store.close();
  }
}

async function replayAll(store) {
  let count = 0;
  for await (const page of store.readStreams({ order: "oldest" })) {
    for (const stream of page) {
      const replayed = replayStream(stream);
      if (!("verdict" in replayed) || !replayed.verdict.allowed) throw new Error("a dispatch did not replay");
      count++;
    }
  }
  return count;
}

async function verify(store) {
  let count = 0;
  for await (const part of verifyAll(store, undefined, 1)) {
    if (part.diverged.length > 0) throw new Error("a dispatch diverged");
    count += part.checked;
  }
  return count;
}

/** Dispatches a second, the median of five. */
async function bestOf(run) {
  const rates = [];
  for (let i = 0; i < 5; i++) {
    const start = performance.now();
    const count = await run();
    if (count !== DISPATCHES) throw new Error(`${count} dispatches instead of ${DISPATCHES}`);
    rates.push((count / (performance.now() - start)) * 1000);
  }
  return rates.sort((a, b) => a - b)[2];
}

function rate(perSecond) {
  return `${Math.round(perSecond).toLocaleString("en")}/s`;
}
