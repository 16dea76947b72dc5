/** The body of the `provider` block, as a host passes it in the environment. */

import type { HookConfig } from "../subscribers/handlers.js";

/** Deep-frozen; empty where there is no text. Null when the text is no JSON object. */
export function parseConfig(text: string | undefined): HookConfig | null {
  try {
    const config: unknown = text === undefined || text === "" ? {} : JSON.parse(text);
    return isConfig(config) ? frozen(config) : null;
  } catch {
    return null;
  }
}

function isConfig(value: unknown): value is HookConfig {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function frozen(config: HookConfig): HookConfig {
  const open: object[] = [config];
  for (let value = open.pop(); value !== undefined; value = open.pop()) {
    Object.freeze(value);
    for (const member of Object.values(value)) {
      if (typeof member === "object" && member !== null) open.push(member);
    }
  }
  return config;
}
