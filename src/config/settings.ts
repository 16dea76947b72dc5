import { RE2JS } from "re2js";
import { type Diagnostics, quoted } from "./diagnostics.js";
import { Fields } from "./fields.js";
import { freeBody } from "./free-body.js";
import { flag, listOf, oneOf, type Reader, shortText, text, whole, wrongType } from "./readers.js";
import type { Settings } from "./types.js";
import type { Block, Value } from "./value.js";

const DEFAULT_HOOK_TIMEOUT_MS = 5_000;
export const MAX_HOOK_TIMEOUT_MS = 600_000;
const MAX_MESSAGE_BYTES = 64 * 1024 * 1024;
const MAX_BUDGET_MS = 2 ** 31 - 1;
const MAX_HOST_LABEL_BYTES = 256;

/** What the origin's schema has in `settings` and this product carries along. */
const KEPT = ["default_frontend", "log_level", "telemetry", "retry", "observability"];

export type ReadSettings = {
  readonly settings: Settings;
  /** Where a git-forge address is to be had instead, by address, as written. */
  readonly devOverrides: ReadonlyMap<string, Value & { type: "string" }>;
};

/** `block` is the `settings` block, or undefined without one. */
export function readSettings(block: Block | undefined, report: Diagnostics): ReadSettings {
  const place = block?.place ?? { file: "", line: 1, col: 1 };
  const fields = new Fields("settings", place, block?.body ?? [], report);
  const chainBudgetMs = fields.optional("chain_budget_ms", whole(1, MAX_BUDGET_MS));
  const hostLabel = fields.optional("host_label", shortText(MAX_HOST_LABEL_BYTES));
  const settings: Settings = {
    defaultHookTimeoutMs:
      fields.optional("default_hook_timeout_ms", whole(1, MAX_HOOK_TIMEOUT_MS)) ?? DEFAULT_HOOK_TIMEOUT_MS,
    observeConcurrency:
      fields.optional("observe_concurrency", oneOf("concurrent", "sequential", "detached")) ?? "concurrent",
    recording: fields.optional("recording", oneOf("barrier", "write-ahead")) ?? "barrier",
    onStoreFailure: fields.optional("on_store_failure", oneOf("abort", "continue")) ?? "abort",
    strict: fields.optional("strict", flag) ?? false,
    redact: fields.optional("redact", listOf(pattern)) ?? [],
    maxMessageBytes: fields.optional("max_message_bytes", whole(1, MAX_MESSAGE_BYTES)) ?? MAX_MESSAGE_BYTES,
    ...(chainBudgetMs !== undefined && { chainBudgetMs }),
    ...(hostLabel !== undefined && { hostLabel }),
    kept: freeBody(fields.take(KEPT), "keep", report),
  };
  const devOverrides = fields.optional("dev_overrides", overrides) ?? new Map();
  fields.close();
  return { settings, devOverrides };
}

const pattern: Reader<string> = (value, what, report) => {
  const read = text(value, what, report);
  if (read === undefined) return undefined;
  try {
    RE2JS.compile(read);
    return read;
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    report.error(value.place, `${what} ${quoted(read)} is no RE2 pattern: ${quoted(why)}`);
    return undefined;
  }
};

const overrides: Reader<ReadonlyMap<string, Value & { type: "string" }>> = (value, what, report) => {
  if (value.type !== "object") return wrongType(value, what, "an object from address to path", report);
  const read = new Map<string, Value & { type: "string" }>();
  for (const member of value.members) {
    if (member.value.type === "string") read.set(member.name, member.value);
    else wrongType(member.value, `${what}.${member.name}`, "a path", report);
  }
  return read;
};
