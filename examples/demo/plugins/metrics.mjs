#!/usr/bin/env node
// An observer: counts what tools answer, a batch at a time. It has a bug of the common kind: a failed tool call has no `result`,
// and the exception is thrown where nobody catches it. The whole process dies, its call unanswered.
import { servePlugin } from "hookledger/plugin";

const sizes = new Map();
const waiting = [];

await servePlugin({
  name: "metrics",
  version: "1.0.0",
  hooks: {
    "post-tool-call": {
      observe({ call, result }) {
        return new Promise((counted) => {
          waiting.push({ call, result, counted });
          setImmediate(count);
        });
      },
    },
  },
});

function count() {
  for (const { call, result, counted } of waiting.splice(0)) {
    sizes.set(call.toolName, Object.keys(result.payload).length);
    counted();
  }
}
