/** The example's gateway, killed under load, with a channel that posts again what was not answered. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { expect, it, onTestFinished } from "vitest";
import { openStore } from "#src/store/open.js";
import { queueOf } from "#src/store/queue-of.js";
import { ChannelServer } from "./http-scene.js";

const GATEWAY = fileURLToPath(new URL("../../../examples/gateway/gateway.mjs", import.meta.url));
const MESSAGES = 120;

async function start(store: string, channel: string): Promise<{ child: ChildProcess; webhook: string }> {
  const child = spawn(process.execPath, [GATEWAY, store, channel], { stdio: ["pipe", "pipe", "ignore"] });
  onTestFinished(() => void child.kill("SIGKILL"));
  const lines = createInterface({ input: child.stdout });
  const [first] = await once(lines, "line");
  child.stdout.resume();
  return { child, webhook: JSON.parse(first).webhook };
}

it("should answer every message, and send nothing again that was acknowledged", async () => {
  const folder = mkdtempSync(join(tmpdir(), "hookledger-gateway-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const store = `sqlite:${join(folder, "ledger.db")}`;
  const server = new ChannelServer();
  await server.listen();
  onTestFinished(() => server.close());
  let gateway = await start(store, server.url);
  const answered = new Set<number>();

  /** As a channel does: until it is answered 200. Returns how often that took. */
  const post = async (n: number): Promise<number> => {
    const body = JSON.stringify({
      id: `m-${n}`,
      from: `ada-${n % 8}`,
      conversation: `c-${n % 8}`,
      text: `number ${n}`,
    });
    for (let times = 1; ; times++) {
      const init = { method: "POST", headers: { "content-type": "application/json" }, body };
      const status = await fetch(gateway.webhook, init).then(
        (response) => response.arrayBuffer().then(() => response.status),
        () => 0,
      );
      if (status === 200) return times;
      await sleep(20);
    }
  };
  const posts = Array.from({ length: MESSAGES }, async (_, n) => {
    const times = await post(n);
    answered.add(n);
    return times;
  });
  for (const share of [0.2, 0.5]) {
    await expect.poll(() => answered.size, { interval: 1, timeout: 20_000 }).toBeGreaterThan(MESSAGES * share);
    const gone = once(gateway.child, "exit");
    gateway.child.kill("SIGKILL");
    await gone;
    gateway = await start(store, server.url);
  }
  const times = await Promise.all(posts);

  gateway.child.kill("SIGTERM");
  expect((await once(gateway.child, "exit"))[0]).toBe(0);
  const opened = await openStore(store, { mode: "read" });
  const kept = (await queueOf(opened)?.deliveries({ limit: 1_000 })) ?? [];
  await opened.close();
  expect(kept.filter(({ state }) => state !== "sent")).toEqual([]);
  expect(server.repeated).toBe(0);
  const shown = Array.from(
    { length: MESSAGES },
    (_, n) => server.texts.filter((text) => text === `You said: number ${n}`).length,
  );
  // Who was not answered before the kill may be answered twice, and nobody else.
  expect(shown.filter((count, n) => count < 1 || count > (times[n] ?? 0))).toEqual([]);
  expect(shown.filter((_, n) => times[n] === 1)).toEqual(shown.filter((_, n) => times[n] === 1).map(() => 1));
});
