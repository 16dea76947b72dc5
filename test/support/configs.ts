/** Configurations for tests that need no file. */
import type { Settings } from "#src/config/types.js";

export function settings(set: Partial<Settings> = {}): Settings {
  return {
    defaultHookTimeoutMs: 5000,
    observeConcurrency: "concurrent",
    recording: "barrier",
    onStoreFailure: "abort",
    strict: false,
    redact: [],
    maxMessageBytes: 64 * 1024 * 1024,
    kept: {},
    ...set,
  };
}
