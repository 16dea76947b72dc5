// Five in-process subscribers, fully recorded in memory, beside dispatchers that record nothing.
import { HookableCore } from "hookable";
import { createKernel, openStore, payloadFromView } from "hookledger";
import tapable from "tapable";
import { evolve, next } from "#src/core/machine.js";
import { NEW } from "#src/core/state.js";
import { canonicalJson } from "#src/payload/canonical-json.js";
import { decodeEvent } from "#src/store/record/decode.js";
import { encodeData } from "#src/store/record/encode.js";
import { seal } from "#src/store/seal.js";
import { fiveHooks, folder, handlers, toolCall } from "./fixtures.mjs";
import { heading, perCall, perSyncCall, row } from "./measure.mjs";

const CALLS = 5_000;

export async function inProcess() {
  heading(
    "5 in-process subscribers (3 observe, 2 veto) at pre-tool-call, one after the other",
    "one dispatch from a plain object to its result; hookledger validates, canonicalises, digests and records 12 chained events in memory",
    "durability, other processes, what the handlers do (nothing); the peers validate nothing, record nothing and have no deadlines",
  );
  const loop = await perCall(plainLoop, { calls: CALLS });
  const tap = await perCall(tapped(), { calls: CALLS });
  const hook = await perCall(hooked(), { calls: CALLS });
  const { us, events } = await recorded();
  row("plain loop", `${loop.toFixed(2)} µs`);
  row("tapable AsyncSeriesBailHook", `${tap.toFixed(2)} µs`);
  row("hookable callHook", `${hook.toFixed(2)} µs`);
  row(
    "hookledger, 12 events recorded",
    `${us.toFixed(1)} µs`,
    `${(us / loop).toFixed(0)} × plain loop; target ≤ 60 µs`,
  );
  parts(events);
}

async function plainLoop() {
  for (const mode of ["observe", "veto", "observe", "veto", "observe"]) {
    const said = await handlers["pre-tool-call"][mode](toolCall.preToolCall);
    if (mode === "veto" && said !== "allow") return "deny";
  }
  return "allow";
}

function tapped() {
  const hook = new tapable.AsyncSeriesBailHook(["payload"]);
  for (let i = 0; i < 5; i++) hook.tapPromise(`h${i}`, async () => undefined);
  return () => hook.promise(toolCall.preToolCall);
}

function hooked() {
  const hooks = new HookableCore();
  for (let i = 0; i < 5; i++) hooks.hook("pre-tool-call", async () => undefined);
  return () => hooks.callHook("pre-tool-call", toolCall.preToolCall);
}

async function recorded() {
  const config = fiveHooks(folder(), "host");
  let kernel;
  let store;
  const us = await perCall(() => kernel.dispatch(toolCall, { session: "session-1", turn: "turn-1" }), {
    calls: CALLS,
    before: async () => {
      await kernel?.close();
      store = await openStore("memory:", { mode: "write" });
      kernel = await createKernel({ config, store, host: { five: handlers } });
    },
  });
  for await (const [stream] of store.readStreams({ order: "newest" })) return { us, events: stream.events };
  throw new Error("nothing was recorded");
}

/** Where the time goes: each part alone, over the 12 events of one such dispatch. */
function parts(recordedEvents) {
  const calls = 10_000;
  const events = recordedEvents.map(({ type, data }) => decodeEvent(type, data).event);
  const drafts = recordedEvents.map((event) => ({ ...event, metadata: `${event.metadata.split(',"chain":')[0]}}` }));
  const machine = perSyncCall(
    () => {
      let state = NEW;
      for (const event of events) {
        state = evolve(state, event);
        next(state);
      }
    },
    { calls },
  );
  const json = perSyncCall(() => events.map(encodeData), { calls });
  const whole = perSyncCall(() => events.map(canonicalJson), { calls });
  const sealing = perSyncCall(
    () => {
      let chain = "";
      drafts.forEach((draft, revision) => {
        chain = seal(chain, revision, draft).chain;
      });
    },
    { calls },
  );
  const timers = perSyncCall(
    () => {
      for (let i = 0; i < 5; i++) clearTimeout(setTimeout(() => {}, 5000));
    },
    { calls },
  );
  const payload = perSyncCall(() => payloadFromView(toolCall).view, { calls });
  row("  of it: machine, 12 × evolve and next", `${machine.toFixed(1)} µs`);
  row("  of it: JSON of 12 events", `${json.toFixed(1)} µs`, `${whole.toFixed(1)} µs without the cached chain text`);
  row("  of it: hashing and sealing 12 events", `${sealing.toFixed(1)} µs`);
  row("  of it: 5 timers set and cleared", `${timers.toFixed(1)} µs`);
  row("  of it: payload encoded and shown as a view", `${payload.toFixed(1)} µs`);
  const floor = machine + json + sealing + timers + payload;
  row(
    "  sum of the parts",
    `${floor.toFixed(1)} µs`,
    "the floor of this design; the rest is promises, metadata, the store and garbage",
  );
}
