// What recording on a server costs beyond one append of the same events, on the test double in a process of its own.
import { EventStoreDBClient, jsonEvent, NO_STREAM } from "@eventstore/db-client";
import { createKernel } from "hookledger";
import { startDoubleProcess } from "../test/support/eventstoredb/process.mjs";
import { fiveHooks, folder, handlers, toolCall } from "./fixtures.mjs";
import { heading, interleaved, percentile, row } from "./measure.mjs";
import { recordedDispatch } from "./recording.mjs";

export async function recordingOnServer() {
  heading(
    "5 in-process subscribers, 12 events, recorded on a double of EventStoreDB in a second process",
    "one dispatch until its decision is acknowledged, beside one append of the same 12 events through the same client in the calling thread, in turn",
    "an EventStoreDB: the double keeps everything in memory and syncs nothing; networks; large payloads; dispatches at once",
  );
  const double = await startDoubleProcess();
  const config = fiveHooks(folder(), "host");
  const kernel = await createKernel({ config, store: double.url, host: { five: handlers } });
  const client = EventStoreDBClient.connectionString(double.url);
  const { events } = await recordedDispatch(config);
  const contents = events.map(({ type, data, metadata }) => ({
    type,
    data: JSON.parse(data),
    metadata: JSON.parse(metadata),
  }));
  const latencies = await interleaved(
    [
      {
        name: "raw",
        run: (i) => client.appendToStream(`raw-${i}`, contents.map(jsonEvent), { expectedRevision: NO_STREAM }),
      },
      { name: "hookledger", run: () => kernel.dispatch(toolCall, { session: "session-1", turn: "turn-1" }) },
    ],
    { calls: 2_000, warmUp: 500 },
  );
  await kernel.close();
  await client.dispose();
  await double.stop();
  const [raw, ours] = ["raw", "hookledger"].map((name) => latencies.get(name));
  for (const [name, values] of [
    ["one append of the 12 events", raw],
    ["hookledger, decision acknowledged", ours],
  ]) {
    row(name, `${percentile(values, 50).toFixed(2)} ms`, `p95 ${percentile(values, 95).toFixed(2)} ms`);
  }
  row("ratio of the medians", `${(percentile(ours, 50) / percentile(raw, 50)).toFixed(2)} ×`, "target ≤ 2 ×");
}
