import { type Diagnostics, quoted } from "./diagnostics.js";
import type { Fields } from "./fields.js";
import { listOf, oneOf, type Reader, text, whole, wrongType } from "./readers.js";
import { EnvReference, type PluginLaunch } from "./types.js";

const DEFAULT_START_TIMEOUT_MS = 10_000;
const MAX_START_TIMEOUT_MS = 600_000;
const MAX_PROTOCOL_VERSION = 2 ** 31 - 1;
const VARIABLE = /^[A-Za-z_][A-Za-z0-9_]*$/;

/** Attributes that only a plugin has. */
export const LAUNCH_ATTRIBUTES = [
  "args",
  "env",
  "start_timeout_ms",
  "cookie",
  "protocol_version",
  "auto_mtls",
] as const;

/** How a plugin is started. */
export function readLaunch(fields: Fields): PluginLaunch {
  const cookieFields = fields.object("cookie");
  const cookie = cookieFields && readCookie(cookieFields);
  const protocolVersion = fields.optional("protocol_version", whole(1, MAX_PROTOCOL_VERSION));
  return {
    args: fields.optional("args", listOf(argument)) ?? [],
    env: fields.optional("env", listOf(variable)) ?? [],
    startTimeoutMs: fields.optional("start_timeout_ms", whole(1, MAX_START_TIMEOUT_MS)) ?? DEFAULT_START_TIMEOUT_MS,
    ...(cookie !== undefined && { cookie }),
    ...(protocolVersion !== undefined && { protocolVersion }),
    autoMtls: fields.optional("auto_mtls", oneOf("auto", "require", "off")) ?? "auto",
  };
}

function readCookie(fields: Fields): PluginLaunch["cookie"] {
  const key = fields.required("key", variable);
  const value = fields.required("value", secret);
  fields.close();
  return key === undefined || value === undefined ? undefined : { key, value };
}

const secret: Reader<string | EnvReference> = (value, what, report) =>
  value.type === "env"
    ? new EnvReference(value.name, value.place)
    : value.type === "string"
      ? argument(value, what, report)
      : wrongType(value, what, 'a string or env("NAME")', report);

/** What can be handed to a process: no NUL. */
const argument: Reader<string> = (value, what, report: Diagnostics) => {
  const read = text(value, what, report);
  if (read?.includes("\0")) {
    report.error(value.place, `${what} holds a NUL`);
    return undefined;
  }
  return read;
};

const variable: Reader<string> = (value, what, report) => {
  const read = text(value, what, report);
  if (read === undefined || VARIABLE.test(read)) return read;
  report.error(value.place, `${what} ${quoted(read)} is no name of an environment variable`);
  return undefined;
};
