/** Kernels whose subscribers are functions of the test, and payloads told by what is said in them. */

import { parseConfig } from "#src/config/load.js";
import { configError } from "#src/config/report.js";
import type { ConfigResult } from "#src/config/types.js";
import { createKernel, type Kernel, type KernelOptions } from "#src/dispatch/kernel.js";
import { type Payload, payloadFromView } from "#src/payload/payload.js";
import { openMemoryStore } from "#src/store/memory.js";
import type { EventStore } from "#src/store/port.js";
import type { HookHandlers } from "#src/subscribers/handlers.js";
import { INPUTS } from "../support/subscriber-calls.js";

export type Hosted = { readonly [name: string]: HookHandlers };

export function parse(text: string): Promise<ConfigResult> {
  return parseConfig([{ name: "agent.hcl", text }]);
}

/** One host provider a name, each with the hook of the mode it is paired with. */
export async function hosted(
  point: string,
  hooks: readonly (readonly [name: string, mode: string])[],
  host: Hosted,
  options: Partial<KernelOptions> & { readonly timeoutMs?: number } = {},
): Promise<{ readonly store: EventStore; readonly kernel: Kernel }> {
  const { timeoutMs, ...rest } = options;
  const providers = hooks.map(([name]) => `  ${name} = { source = "host" }\n`).join("");
  const timeout = timeoutMs === undefined ? "" : `  timeout_ms = ${timeoutMs}\n`;
  const blocks = hooks.map(
    ([name, mode]) => `hook "${point}" {\n  provider = "${name}"\n  mode = "${mode}"\n${timeout}}\n`,
  );
  const parsed = await parse(`required_providers {\n${providers}}\n${blocks.join("")}`);
  if (!parsed.ok) throw configError("agent.hcl", parsed.errors);
  const store = openMemoryStore();
  return { store, kernel: await createKernel({ host, ...rest, config: parsed.config, store }) };
}

const { model } = INPUTS["pre-model-call"].preModelCall;

/** A pre-model-call payload with a message a text. */
export function saying(...texts: readonly string[]): Payload {
  return payloadFromView({
    preModelCall: {
      messages: texts.map((text) => ({ role: "ROLE_USER", content: [{ text: { text } }], id: text })),
      model,
    },
  });
}

export function said(payload: Payload | null): string[] {
  const { messages } = (payload?.view ?? { messages: [] }) as { messages: { id: string }[] };
  return messages.map(({ id }) => id);
}
