/** The same through the command line: modules that say all they know, and every command that reads what was recorded. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { type Ran, run } from "../support/cli.js";
import { projectWith } from "../support/cli-project.js";
import { filesBelow, leaks } from "./needles.js";

const TOKEN = "canary-7f3a9c51e2d84b06";
const KEY = "sk-canary-0123456789";
const LINES = ["-----BEGIN KEY-----", "canary1line2of3", "-----END KEY-----"];
const SECRETS = [TOKEN, KEY, ...LINES];

const SAY = `
  const token = ctx.config.token;
  console.log(token);
  console.log("all of it:\\n" + ctx.config.key);
  console.error(ctx.config.key);
  console.error("seen:", token);
  process.stdout.write("${KEY}\\n");
  ctx.log.warn({ [token]: "${KEY}" });
  setTimeout(() => { throw new Error("stray " + token); }, 1);
  Promise.reject(new Error("nobody catches " + token));
  await new Promise((resolve) => setTimeout(resolve, 20));
`;

const PAYLOADS: Readonly<Record<string, string>> = {
  "plan.json": JSON.stringify({
    planReady: {
      plan: {
        turnId: TOKEN,
        items: [
          { id: KEY, provider: TOKEN, operationName: "write", input: { [TOKEN]: { [KEY]: [TOKEN] } } },
          { id: "b", provider: "fs", operationName: "write", decision: "PLAN_DECISION_DENY", decidedBy: TOKEN },
        ],
      },
    },
  }),
  "messages.json": JSON.stringify({
    preModelCall: {
      messages: [
        {
          role: "ROLE_USER",
          content: [
            { text: { text: `use ${TOKEN} or ${KEY}` } },
            { image: { data: Buffer.from(`\u00ff${TOKEN}`, "latin1").toString("base64"), mediaType: "image/png" } },
          ],
        },
      ],
      model: { provider: "p", id: TOKEN },
    },
  }),
  "tool-result.json": JSON.stringify({
    postToolCall: { call: { id: TOKEN, toolName: KEY }, result: { payload: { [KEY]: TOKEN } } },
  }),
  "unknown-key.json": JSON.stringify({ preModelCall: { [TOKEN]: KEY } }),
  "wrong-type.json": JSON.stringify({ preModelCall: { messages: [{ role: KEY, id: { [TOKEN]: 1 } }] } }),
  "no-json.json": `{"preModelCall": ${TOKEN} ${KEY}}`,
};

const DISPATCHES: readonly (readonly [payload: string, flag: string, code: number])[] = [
  ["plan.json", "--verbose", 3],
  ["messages.json", "--verbose", 4],
  ["tool-result.json", "--verbose", 0],
  ["plan.json", "--json", 3],
  ["unknown-key.json", "--verbose", 2],
  ["wrong-type.json", "--json", 2],
  ["no-json.json", "--verbose", 2],
];

const READING: readonly (readonly string[])[] = [
  ["list"],
  ["replay", "--all"],
  ["replay", "--all", "--json"],
  ["verify", "--all", "--json"],
  ["recover", "--dry-run", "--json"],
  ["audit", "export", "--all"],
  ["audit", "export", "--all", "--format", "csv"],
  ["audit", "export", "--all", "--out", "audit.ndjson"],
  ["validate"],
];

describe("the command line", () => {
  it("should print no secret but the caller's own payload, and leave none in any file", async () => {
    const folder = projectWith({
      hooks: [
        {
          point: "plan-ready",
          mode: "veto",
          handler: `${SAY} return { decision: "deny", reason: token + " ${KEY}" };`,
        },
        { point: "pre-model-call", mode: "transform", handler: `${SAY} throw new Error("no " + token + " ${KEY}");` },
        { point: "post-tool-call", mode: "observe", handler: `${SAY} throw token;` },
      ],
      policy: `policy "writes" {\n  match  = { tool_name = "write" }\n  action = "ask"\n  reason = "with ${KEY}"\n}`,
      settings: 'redact = ["sk-canary-[0-9]+"]\nobserve_concurrency = "detached"',
    });
    const env = { CANARY: TOKEN, CANARY_KEY: LINES.join("\n") };
    const config = ["s0", "s1", "s2"]
      .map((name) => `provider "${name}" {\n  token = env("CANARY")\n  key = env("CANARY_KEY")\n}`)
      .join("\n");
    const inFolder = { cwd: folder, env };
    const files = { ...PAYLOADS, "more.hcl": config };
    for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);

    const printed: Record<string, string> = {};
    const keep = (name: string, { stdout, stderr }: Ran): void => {
      Object.assign(printed, { [`stdout of ${name}`]: stdout, [`stderr of ${name}`]: stderr });
    };
    for (const [name, flag, code] of DISPATCHES) {
      const ran = await run([flag, "--config", ".", "dispatch", "--payload", name, "--session", "s"], inFolder);
      expect(ran.code, ran.stderr).toBe(code);
      // The caller's own payload is the caller's; all else that is said there is not.
      keep(`dispatch ${name} ${flag}`, { ...ran, stdout: withoutPayload(ran.stdout) });
    }
    const listed = await run(["list", "--json"], inFolder);
    keep("list --json", listed);
    const ids = listed.stdout
      .trim()
      .split("\n")
      .map((line): string => JSON.parse(line).dispatchId);
    expect(ids).toHaveLength(4);
    const shows = ids.slice(1).flatMap((id) => [
      ["show", id, "--verbose"],
      ["show", id, "--json"],
    ]);
    for (const args of [...READING, ...shows]) {
      const ran = await run(["--config", ".", ...args], inFolder);
      expect(ran.code, args.join(" ")).toBe(0);
      keep(args.join(" "), ran);
    }
    const left = Object.entries(filesBelow(folder)).filter(
      ([name]) => !(name in PAYLOADS) && !/\.(hcl|mjs)$/.test(name),
    );
    expect(left.map(([name]) => name)).toEqual(
      expect.arrayContaining([join(".hookledger", "ledger.db"), "audit.ndjson"]),
    );
    expect(leaks(SECRETS, { ...printed, ...Object.fromEntries(left) })).toEqual([]);
    for (const said of [
      "stderr of dispatch plan.json --verbose",
      `stdout of show ${ids[1]} --json`,
      "stdout of audit export --all --format csv",
    ]) {
      expect(printed[said], said).toContain("[redacted]");
    }
  }, 120_000);
});

/** Of a result as text or JSON: everything but the payload and the plan's items, which are the caller's. */
function withoutPayload(stdout: string): string {
  if (!stdout.startsWith("{")) return stdout.replace(/^ {2}\S.*$/gm, "");
  const { payload: _, planDecisions: __, ...rest } = JSON.parse(stdout);
  return JSON.stringify(rest);
}
