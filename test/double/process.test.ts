import { describe, expect, it, onTestFinished } from "vitest";
import { startDoubleProcess } from "../support/eventstoredb/process.mjs";
import { all, anEvent, clientOf } from "./client.js";

describe("the double in a process of its own", () => {
  it("should say that it is none of the real ones, serve, and end", async () => {
    const double = await startDoubleProcess();
    onTestFinished(() => double.stop());
    expect(double.said).toMatch(/^TEST DOUBLE, no EventStoreDB/);
    const client = clientOf(double.url);
    await client.appendToStream("s-1", anEvent());
    expect(await all(client.readStream("s-1"))).toHaveLength(1);
  });
});
