/** Folders in which the command line can dispatch. */
import { folderWith } from "./cli.js";

export type Hook = {
  readonly point: string;
  readonly mode: "observe" | "transform" | "veto";
  /** Body of the handler; `payload` and `ctx` are at hand. */
  readonly handler: string;
  /** ms */
  readonly timeoutMs?: number;
  /** Text before the export. */
  readonly module?: string;
};

export type Project = {
  readonly hooks?: readonly Hook[];
  /** HCL of policies. */
  readonly policy?: string;
  /** HCL of the settings' body. */
  readonly settings?: string;
  readonly files?: Readonly<Record<string, string | Uint8Array>>;
};

/** One module a hook, `s0`, `s1`, …; `plan.json`, `messages.json` and `tool-result.json` to dispatch. */
export function projectWith({ hooks = [], policy = "", settings = "", files = {} }: Project = {}): string {
  const providers = hooks.map((_, n) => `  s${n} = { source = "module:./s${n}.mjs" }`);
  const blocks = hooks.map(
    ({ point, mode, timeoutMs = 5000 }, n) =>
      `hook "${point}" {\n  provider = "s${n}"\n  mode = "${mode}"\n  timeout_ms = ${timeoutMs}\n}`,
  );
  const modules = hooks.map(({ point, mode, handler, module = "" }, n) => [
    `s${n}.mjs`,
    `${module}\nexport default { "${point}": { async ${mode}(payload, ctx) { ${handler} } } };`,
  ]);
  return folderWith({
    "agent.hcl": [
      `required_providers {\n${providers.join("\n")}\n}`,
      ...blocks,
      policy,
      `settings {\n${settings}\n}`,
    ].join("\n\n"),
    ...Object.fromEntries(modules),
    "plan.json": planJson(item("one", "TOOL_KIND_DATA_SOURCE")),
    "messages.json": messagesJson("hello"),
    "tool-result.json": '{"postToolCall":{"call":{"id":"c1","toolName":"read_file"},"result":{}}}',
    ...files,
  });
}

export function item(id: string, kind: string, provider = "filesystem") {
  return { id, kind, provider, operationName: "read_file", decision: "PLAN_DECISION_PENDING" };
}

export function planJson(...items: readonly object[]): string {
  return JSON.stringify({ planReady: { plan: { turnId: "t1", items } } });
}

export function messagesJson(text: string): string {
  return JSON.stringify({
    preModelCall: {
      messages: [{ role: "ROLE_USER", content: [{ text: { text } }] }],
      model: { provider: "p", id: "m" },
    },
  });
}
