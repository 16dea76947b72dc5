/** What the client throws outside its promises, and what the adapter's threads are for. The double provokes both. */
import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { describe, expect, it, onTestFinished } from "vitest";
import { aDouble } from "./client.js";

type Append = { readonly url: string; readonly stream: string; readonly bytes: number };

class ClientThread {
  readonly results = new Map<string, string>();
  readonly #worker = new Worker(new URL("./client-in-worker.mjs", import.meta.url));
  /** What it died of. */
  readonly death = once(this.#worker, "error").then(([error]: Error[]) => String(error));

  constructor() {
    this.#worker.on("message", ({ stream, result }) => this.results.set(stream, result));
    onTestFinished(async () => {
      await this.#worker.terminate();
    });
  }

  append(append: Append): void {
    this.#worker.postMessage(append);
  }

  async answered(stream: string): Promise<string | undefined> {
    while (!this.results.has(stream)) await once(this.#worker, "message");
    return this.results.get(stream);
  }
}

describe("the client", () => {
  it("should throw in nobody's call when a reply comes after another client's connection was cut", async () => {
    const [one, other] = [await aDouble(), await aDouble()];
    const thread = new ClientThread();
    thread.append({ url: other.url, stream: "warm-1", bytes: 1 });
    await thread.answered("warm-1");
    let release = () => {};
    const late = one.faults.holdReply(
      { method: "batchAppend" },
      new Promise<void>((resolve) => {
        release = resolve;
      }),
    );
    thread.append({ url: one.url, stream: "s-1", bytes: 1 });
    await late.struck;
    other.cutAll();
    expect(await thread.answered("s-1")).toBe("unavailable");
    expect(one.log.last("s-1")).toBe(0);
    release();
    expect(await thread.death).toMatch(/TypeError/);
  });

  it("should throw in nobody's call when a connection is cut that it waits to write to", async () => {
    const double = await aDouble();
    const thread = new ClientThread();
    thread.append({ url: double.url, stream: "warm-1", bytes: 1 });
    await thread.answered("warm-1");
    const held = double.faults.holdWrite({ method: "batchAppend" }, new Promise<void>(() => {}));
    for (let n = 0; n < 60; n += 1) thread.append({ url: double.url, stream: `s-${n}`, bytes: 500_000 });
    await held.struck;
    double.cutAll();
    expect(await thread.death).toMatch(/UNAVAILABLE|UnavailableError|unavailable/i);
  });
});
