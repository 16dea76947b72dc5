#!/usr/bin/env node
// Writes down what happened, a line of JSON each: who, where, when, and digests of what went in and came out. No content.
//
// A line is in the file before its call is answered, so there is never one to lose: not when the kernel stops this process,
// and not when it is killed. The file is opened anew for each, so that it can be rotated.
import { createHash } from "node:crypto";
import { appendFileSync } from "node:fs";
import { servePlugin } from "hookledger/plugin";

/** @type {import("hookledger/plugin").HookHandlers} */
const hooks = {
  "session-start": {
    observe: ({ sessionId, parentSessionId }, ctx) => write(ctx, { sessionId, parentSessionId }),
  },
  "post-tool-call": {
    observe: ({ call, result, error }, ctx) =>
      write(ctx, {
        call: call?.id,
        tool: call?.toolName,
        arguments: digestOf(call?.arguments),
        ...(error === undefined ? { result: digestOf(result?.payload) } : { error: error.category }),
      }),
  },
  "post-apply": {
    observe: ({ apply }, ctx) =>
      write(ctx, { items: apply?.items.map(({ planItemId, callId, outcome }) => ({ planItemId, callId, outcome })) }),
  },
  "session-end": {
    observe: ({ sessionId, status }, ctx) => write(ctx, { sessionId, status }),
  },
};

function write({ config, point, session, turn }, facts) {
  if (typeof config.file !== "string") throw new TypeError("the provider block names no file");
  const line = JSON.stringify({ at: new Date().toISOString(), point, session, turn, ...facts }, cut);
  appendFileSync(config.file, `${line}\n`, { mode: 0o600 });
}

/** Ids are short; what is not is somebody's attempt to put something else here. */
function cut(_, value) {
  return typeof value === "string" ? value.slice(0, 256) : value;
}

/** Of plain data, whatever the order of its keys. */
function digestOf(data) {
  if (data === undefined) return undefined;
  return `sha256:${createHash("sha256").update(JSON.stringify(data, sorted)).digest("hex")}`;
}

function sorted(_, value) {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}

await servePlugin({ name: "audit-sink", version: "1.0.0", hooks });
