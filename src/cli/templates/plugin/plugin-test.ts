/** The test that `init --plugin` writes. */
export const PLUGIN_TEST = `import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import { createKernel, payloadFromJson, payloadToJson } from "hookledger";

// A real kernel starts the plugin, as it will be in use; the ledger is in memory.
const kernel = await createKernel({
  config: fileURLToPath(new URL("../agent.hcl", import.meta.url)),
  store: "memory:",
  log: ({ level, message }) => console.error(\`\${level}: \${message}\`),
});
after(() => kernel.close());

test("no e-mail address reaches the model", async () => {
  const sent = await payloadNamed("pre-model-call");
  const { payload, hookErrors } = await kernel.dispatch(sent);
  assert.deepEqual(hookErrors, []);
  const expected = JSON.stringify(payloadToJson(sent)).replace("ada@example.org", "[email]");
  assert.equal(JSON.stringify(payloadToJson(payload)), expected);
});

test("a small plan may go", async () => {
  const { allowed, hookErrors } = await kernel.dispatch(await payloadNamed("plan-ready"));
  assert.deepEqual({ allowed, hookErrors }, { allowed: true, hookErrors: [] });
});

test("a plan that is too large is denied, and the reason says so", async () => {
  const items = Array.from({ length: 21 }, (_, place) => ({ id: \`item-\${place}\`, kind: "TOOL_KIND_DATA_SOURCE" }));
  const { decision, decidedBy, reason } = await kernel.dispatch({ planReady: { plan: { items } } });
  assert.deepEqual([decision, decidedBy, reason], ["deny", "guard", "21 items are too many for one plan"]);
});

async function payloadNamed(name) {
  return payloadFromJson(await readFile(new URL(\`../payloads/\${name}.json\`, import.meta.url)));
}
`;
