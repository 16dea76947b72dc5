// A program that owns its process, as the CLI does: it contains one module, calls its handlers, and answers on stdout.
//
//   node contained.mjs <module> <json: [{ point, mode }…]> [timeoutMs]
//
// Prints { answers, strays, loadError } as one line of JSON and exits with 7, whatever the module does.

import { payloadFromView } from "#src/payload/payload.js";
import { contain } from "#src/subscribers/containment.js";
import { loadModule } from "#src/subscribers/module.js";

const [path, callsText, timeoutMs] = process.argv.slice(2);
const calls = JSON.parse(callsText);
const inputs = {
  "session-start": { sessionStart: { sessionId: "s-1", profile: "default", workingDirectory: "/" } },
  "plan-ready": { planReady: { plan: { turnId: "t-1", items: [] } } },
};
const report = { answers: [], strays: [], loadError: null };
const containment = contain({ onStray: (stray) => report.strays.push(stray) });
const provider = {
  name: "unruly",
  sourceText: "module:./unruly.mjs",
  source: { kind: "module", path },
  sensitive: [],
  place: { file: "agent.hcl", line: 2, col: 3 },
};

function invocation({ point, mode }) {
  const controller = new AbortController();
  return {
    dispatchId: "01ARZ3NDEKTSV4RRFFQ69G5FAV",
    point,
    mode,
    payload: payloadFromView(inputs[point]),
    subscriptionId: undefined,
    session: undefined,
    turn: undefined,
    traceparent: undefined,
    signal: controller.signal,
    timeoutMs: 1000,
    remainingMs: () => 1000,
  };
}

try {
  const transport = await loadModule(provider, calls, {
    config: Object.freeze({}),
    log: () => {},
    containment,
    ...(timeoutMs === undefined ? {} : { timeoutMs: Number(timeoutMs) }),
  });
  report.answers = await Promise.all(calls.map((call) => transport.invoke(invocation(call))));
  // Whatever the module left for later in this turn of the loop and the next few happens before the report.
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setTimeout(resolve, 1));
} catch (error) {
  report.loadError = { code: error.code, message: error.message, place: error.place };
}
process.stdout.write(`${JSON.stringify(report)}\n`, () => containment.exit(7));
