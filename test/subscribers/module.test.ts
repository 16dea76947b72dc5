import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { loadModule } from "#src/subscribers/module.js";
import { call, provider } from "../support/subscriber-calls.js";

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "hookledger-module-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

let count = 0;
function written(text: string): string {
  const path = join(folder, `m${count++}.mjs`);
  writeFileSync(path, text);
  return path;
}

const log = () => {};
const NEEDED = [{ point: "pre-model-call", mode: "transform" }] as const;

function load(path: string, needed: Parameters<typeof loadModule>[1] = NEEDED, timeoutMs = 5_000) {
  return loadModule(provider({ kind: "module", path }), needed, { config: {}, log, timeoutMs });
}

describe("a module that cannot be used", () => {
  it.each([
    ["is missing", () => join(folder, "nowhere.mjs"), /there is no such file/],
    ["is a folder", () => folder, /not a file/],
    ["has a syntax error", () => written("export default {"), /its import failed: SyntaxError: /],
    ["throws on import", () => written("throw new TypeError('no key')"), /its import failed: TypeError: no key$/],
    ["throws nothing on import", () => written("throw null"), /its import failed: nothing was thrown/],
    ["imports what is not there", () => written("import 'nowhere'; export default {}"), /its import failed: /],
    ["has no default export", () => written("export const x = 1"), /no default export/],
    ["exports null", () => written("export default null"), /lacks the handler pre-model-call\.transform$/],
    ["lacks the point", () => written("export default {}"), /lacks the handler pre-model-call\.transform$/],
    ["lacks the mode", () => written("export default { 'pre-model-call': { veto() {} } }"), /lacks the handler/],
    ["has no function there", () => written("export default { 'pre-model-call': { transform: 1 } }"), /lacks the/],
    [
      "inherits the handler",
      () => written("export default Object.create({ 'pre-model-call': { transform() {} } })"),
      /lacks the handler/,
    ],
    [
      "throws when it is read",
      () => written("export default { get 'pre-model-call'() { throw new Error('private') } }"),
      /its handlers cannot be read: private$/,
    ],
    [
      "is a revoked proxy",
      () => written("const p = Proxy.revocable({}, {}); p.revoke(); export default p.proxy"),
      /cannot be read/,
    ],
  ])("should be refused at its place when it %s", async (_, path, message) => {
    await expect(load(path())).rejects.toMatchObject({
      code: "HL_SUBSCRIBER_LOAD",
      message: expect.stringMatching(message),
      place: { file: "agent.hcl", line: 2, col: 3 },
    });
  });

  it("should be refused when its import does not end in time, and its late end should harm nobody", async () => {
    const path = written("await new Promise((_, reject) => setTimeout(reject, 20)); export default {}");
    await expect(load(path, NEEDED, 5)).rejects.toMatchObject({
      code: "HL_SUBSCRIBER_LOAD",
      message: expect.stringMatching(/did not end within 5 ms$/),
    });
    await new Promise((resolve) => setTimeout(resolve, 30));
  });

  it("should say which key is no hook point", async () => {
    const path = written("export default { 'pre-modl-call': { transform() {} } }");
    await expect(load(path)).rejects.toMatchObject({ hint: '"pre-modl-call" is no hook point' });
  });
});

describe("a module", () => {
  it("should not be taken for a promise because it has a then", async () => {
    const path = written(`export default { then(taken) { taken({}); }, "pre-tool-call": { veto: () => "deny" } }`);
    const transport = await load(path, [{ point: "pre-tool-call", mode: "veto" }]);
    expect(await transport.invoke(call("veto"))).toMatchObject({ class: "deny" });
  });

  it("should answer with its own handlers, called on their owner", async () => {
    const path = written(`export default {
      "session-start": { seen: 0, observe() { this.seen++; } },
      "pre-tool-call": { verdict: "deny", veto() { return { decision: this.verdict, reason: "no" }; } },
    }`);
    const transport = await load(path, [
      { point: "session-start", mode: "observe" },
      { point: "pre-tool-call", mode: "veto" },
    ]);
    expect(await transport.invoke(call("observe"))).toEqual({ class: "ack" });
    expect(await transport.invoke(call("veto"))).toEqual({ class: "deny", reason: "no" });
  });

  it("should be imported by its real path, so that a link to it is the same module", async () => {
    const real = written(
      "let n = 0; export default { 'pre-tool-call': { veto() { return n++ === 0 ? 'allow' : 'deny'; } } }",
    );
    mkdirSync(join(folder, "linked"));
    const link = join(folder, "linked", "m.mjs");
    symlinkSync(real, link);
    const needed = [{ point: "pre-tool-call", mode: "veto" }] as const;
    const answers = [];
    for (const path of [real, link]) answers.push((await (await load(path, needed)).invoke(call("veto"))).class);
    expect(answers).toEqual(["allow", "deny"]);
  });

  it("should be found under a path with characters that URLs do not like", async () => {
    const path = join(folder, "a b#c?d%25.mjs");
    writeFileSync(path, "export default { 'pre-tool-call': { veto: () => 'allow' } }");
    const transport = await load(path, [{ point: "pre-tool-call", mode: "veto" }]);
    expect(await transport.invoke(call("veto"))).toEqual({ class: "allow" });
  });
});
