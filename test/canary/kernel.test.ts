/** Secrets in every place where a harness or a subscriber can put them: none reaches a store, a log line, a span or an error. */
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { setTimeout as after } from "node:timers/promises";
import Database from "better-sqlite3";
import { describe, expect, it } from "vitest";
import { parseConfig } from "#src/config/load.js";
import { createKernel } from "#src/dispatch/kernel.js";
import type { DispatchResult } from "#src/dispatch/result.js";
import { type HookPayloadInput, UNKNOWN_FIELDS } from "#src/payload/messages.js";
import type { HookHandlers } from "#src/subscribers/handlers.js";
import { folderWith } from "../support/cli.js";
import { Observatory } from "../support/tracing.js";
import { filesBelow, leaks, needlesOf } from "./needles.js";

/** Resolved from the environment. */
const TOKEN = "canary-7f3a9c51e2d84b06";
const NOTE = 'canary "q" ü/+?\u{1F426}\n\u0007\u200b\u2028 tail';
const LONG = `canary.${"eyJhbGciOiJIUzI1NiJ9".repeat(5)}`;
/** Found by a pattern of the operator. */
const KEY = "sk-canary-0123456789";
const SECRETS = [TOKEN, NOTE, LONG, KEY];

const CONFIG = `
required_providers {
  leaky   = { source = "host", sensitive = ["token"] }
  watcher = { source = "host" }
}
provider "leaky" {
  token = env("CANARY_TOKEN")
}
provider "watcher" {
  nested = { note = env("CANARY_NOTE"), long = env("CANARY_LONG") }
}
hook "pre-tool-call" {
  provider = "watcher"
  mode     = "observe"
}
hook "pre-tool-call" {
  provider = "leaky"
  mode     = "veto"
}
hook "pre-model-call" {
  provider = "leaky"
  mode     = "transform"
}
hook "plan-ready" {
  provider = "leaky"
  mode     = "veto"
}
policy "by_name" {
  match  = { tool_name = "write" }
  action = "deny"
  reason = "never with ${KEY}"
}
settings {
  redact              = ["sk-canary-[0-9]+"]
  observe_concurrency = "detached"
}
`;

const all = SECRETS.join(" and ");

/** How a veto, or a transform, may give away what it knows. */
const FAULTS: readonly ((payload: unknown) => unknown)[] = [
  () => {
    throw new Error(`no access with ${all}`);
  },
  () => {
    throw all;
  },
  () => {
    throw Object.assign(new TypeError(all), { name: TOKEN, cause: new Error(KEY) });
  },
  () => Promise.reject({ message: all }),
  // What comes out of the bound of a message is the beginning of a secret.
  () => {
    throw new Error(`${"x".repeat(2040)}${TOKEN}`);
  },
  () => all,
  () => ({ decision: TOKEN }),
  () => ({ decision: "deny", [NOTE]: KEY }),
  () => ({ decision: "deny", [LONG]: 1 }),
  () => ({ decision: "deny", reason: all }),
  () => ({ decision: "deny", reason: `${"x".repeat(1015)}${TOKEN}` }),
  (payload) => ({ ...Object(payload), [TOKEN]: 1 }),
  (payload) => ({ ...Object(payload), messages: [{ [TOKEN]: NOTE, role: KEY }] }),
  (payload) => ({ ...Object(payload), model: { provider: TOKEN, id: KEY } }),
  (payload) => ({ ...Object(payload), messages: all }),
  (payload) => ({ ...Object(payload), messages: [{ [LONG]: 1 }] }),
  () => {
    throw Object.assign(new Error("no"), { name: LONG });
  },
  () => ({
    get messages() {
      throw new Error(all);
    },
  }),
  (payload) => ({
    ...Object(payload),
    messages: [
      {
        role: "ROLE_USER",
        content: [{ text: { text: all } }, { toolUse: { arguments: { [TOKEN]: { [KEY]: NOTE } } } }],
      },
    ],
  }),
  () => "allow",
];

const struct = { [TOKEN]: NOTE, [KEY]: [TOKEN, { [NOTE]: KEY }], plain: all };
const bytes = Buffer.concat([Buffer.of(0xff, 0xfe), Buffer.from(TOKEN), Buffer.of(0xff)]);
const unknownField = Buffer.concat([Buffer.of(0xfa, 0x3e, TOKEN.length), Buffer.from(TOKEN)]);

const INPUTS: readonly HookPayloadInput[] = [
  {
    preToolCall: {
      call: {
        id: TOKEN,
        toolName: KEY,
        arguments: struct,
        callContext: { sessionId: NOTE },
        [UNKNOWN_FIELDS]: new Uint8Array(unknownField),
      },
      planItem: { id: KEY, preview: { root: { table: { headers: [TOKEN], rows: [{ cells: [NOTE] }] } } } },
    },
  },
  {
    preModelCall: {
      messages: [
        {
          role: "ROLE_USER",
          id: KEY,
          content: [
            { text: { text: all } },
            { image: { data: new Uint8Array(bytes), mediaType: NOTE } },
            { document: { data: new Uint8Array(Buffer.from(all)), mediaType: "text/plain", filename: TOKEN } },
            { toolUse: { id: "t", name: NOTE, arguments: struct } },
            { toolResult: { toolUseId: TOKEN, content: [{ text: { text: `${"long ".repeat(1000)}${TOKEN}` } }] } },
          ],
        },
      ],
      model: { provider: TOKEN, id: KEY },
    },
  },
  {
    planReady: {
      plan: {
        turnId: TOKEN,
        items: [
          {
            id: KEY,
            provider: TOKEN,
            operationName: "write",
            input: struct,
            decision: "PLAN_DECISION_DENY",
            decidedBy: NOTE,
          },
          { id: TOKEN, provider: NOTE, operationName: "write", description: all },
        ],
      },
    },
  },
];

function handlers(
  fault: (payload: unknown) => unknown,
  said: (text: string) => void,
): Readonly<Record<string, HookHandlers>> {
  const misbehave = (payload: unknown, ctx: { config: unknown; log: { info(message: unknown): void } }): never => {
    said(JSON.stringify(ctx.config));
    ctx.log.info(all);
    ctx.log.info({ [TOKEN]: NOTE });
    ctx.log.info(new Error(KEY));
    // The type of a handler forbids what this test is about.
    return fault(payload) as never;
  };
  return {
    leaky: {
      "pre-tool-call": { veto: misbehave },
      "pre-model-call": { transform: misbehave },
      "plan-ready": { veto: misbehave },
    },
    watcher: {
      "pre-tool-call": {
        async observe(_, ctx) {
          said(JSON.stringify(ctx.config));
          await after(1);
          throw new Error(`late: ${all}`);
        },
      },
    },
  };
}

type Outcome = {
  readonly results: readonly DispatchResult[];
  readonly sources: Record<string, string | Uint8Array>;
  readonly told: string;
};

/** Everything that a kernel leaves behind when all of its subscribers do their worst. */
async function worst(config: string): Promise<Outcome> {
  const folder = folderWith({});
  const parsed = await parseConfig([{ name: "agent.hcl", text: config }]);
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.errors));
  const observatory = new Observatory();
  const lines: unknown[] = [];
  const errors: unknown[] = [];
  const results: DispatchResult[] = [];
  let told = "";
  const sources: Record<string, string | Uint8Array> = {};
  for (const [n, fault] of FAULTS.entries()) {
    const kernel = await createKernel({
      config: parsed.config,
      store: `sqlite:${join(folder, "ledger.db")}`,
      host: handlers(fault, (text) => {
        told += text;
      }),
      env: { CANARY_TOKEN: TOKEN, CANARY_NOTE: NOTE, CANARY_LONG: LONG },
      tracer: observatory.tracer,
      meter: observatory.meter,
      log: (line) => lines.push(line),
      onHookError: (error) => errors.push(error),
    });
    for (const input of INPUTS) results.push(await kernel.dispatch(input, { session: "s-1" }));
    if (n === 0) {
      // While it is open, with its log and locks; by another process, so that no lock of this one is dropped.
      const copy = folderWith({});
      execFileSync("cp", ["-r", folder, copy]);
      for (const [name, content] of Object.entries(filesBelow(copy))) sources[`${name} while open`] = content;
    }
    await kernel.close();
  }
  Object.assign(sources, filesBelow(folder));
  const db = new Database(join(folder, "ledger.db"), { readonly: true });
  for (const table of ["events", "heads", "payloads", "chunks"]) {
    // Whole values: a page of the file may cut one.
    for (const [row, columns] of db.prepare<[], unknown[]>(`SELECT * FROM ${table}`).raw().all().entries()) {
      for (const [place, column] of columns.entries()) {
        sources[`${table} ${row} column ${place}`] = column instanceof Uint8Array ? column : String(column);
      }
    }
  }
  db.close();
  sources["log lines"] = JSON.stringify(lines);
  sources["hook errors"] = JSON.stringify(errors);
  sources["spans"] = JSON.stringify(
    observatory.spans.ended.map(({ name, attributes, events, status, links }) => ({
      name,
      attributes,
      events,
      status,
      links,
    })),
  );
  sources["results"] = JSON.stringify(
    results.map(({ dispatchId, point, reason, hookErrors, decidedBy }) => ({
      dispatchId,
      point,
      reason,
      hookErrors,
      decidedBy,
    })),
  );
  return { results, sources, told };
}

describe("the search itself", () => {
  it.each(SECRETS)("should find a secret in every form: %j", (secret) => {
    for (const { form, bytes } of needlesOf(secret)) {
      expect(
        leaks([secret], { source: Buffer.concat([Buffer.from("\0xx"), bytes, Buffer.from("yy")]) }),
        form,
      ).not.toEqual([]);
    }
    for (const offset of [0, 1, 2]) {
      const source = Buffer.from(`${"#".repeat(offset)}${secret}#`).toString("base64");
      expect(leaks([secret], { source })).not.toEqual([]);
    }
    expect(leaks([secret], { source: "nothing of the kind" })).toEqual([]);
  });

  it("should find them where nothing says that they are secrets", async () => {
    const open = CONFIG.replace(/^ *(token|nested|redact).*$/gm, "").replace(', sensitive = ["token"]', "");
    const { sources } = await worst(open);
    const found = leaks(SECRETS, sources).join("\n");
    for (const place of [
      "ledger.db",
      "ledger.db-wal while open",
      "events",
      "payloads",
      "chunks",
      "log lines",
      "hook errors",
      "results",
    ]) {
      expect(found).toMatch(new RegExp(` in \\S*${place}`));
    }
    for (const secret of SECRETS) expect(found).toContain(secret);
    expect(found).toMatch(/base64 at/);
  });
});

describe("a kernel whose subscribers do their worst", () => {
  it("should let no secret out but to subscribers and to the caller", async () => {
    const { results, sources, told } = await worst(CONFIG);
    expect(leaks(SECRETS, sources)).toEqual([]);
    expect(JSON.stringify(sources)).toContain("[redacted]");
    // The truth was there to be given away.
    expect(told).toContain(TOKEN);
    expect(told).toContain(JSON.stringify(NOTE).slice(1, -1));
    const payloads = results.flatMap(({ payload }) => (payload === null ? [] : Buffer.from(payload.bytes)));
    expect(Buffer.concat(payloads).includes(TOKEN)).toBe(true);
    expect(results.filter(({ status }) => status === "aborted").length).toBeGreaterThan(5);
    expect(results.filter(({ decision }) => decision === "deny").length).toBeGreaterThan(10);
  });
});
