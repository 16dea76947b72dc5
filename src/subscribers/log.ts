/** What in-process subscribers say goes through one injected sink, bounded. */

import { rawText } from "../payload/text.js";
import { thrownText } from "./fault.js";

type LogLevel = "debug" | "info" | "warn" | "error";

/** Where lines go. `message`: at most 65 536 UTF-16 units; a kernel hands it on redacted and with its controls escaped. */
export type LogSink = (line: { readonly level: LogLevel; readonly provider: string; readonly message: string }) => void;

/** For authors. Never throws, whatever it is given. */
export type Logger = { readonly [level in LogLevel]: (message: unknown) => void };

export function loggerFor(provider: string, sink: LogSink): Logger {
  const at = (level: LogLevel) => (message: unknown) => {
    try {
      const text = typeof message === "string" ? message : describe(message);
      const answer: unknown = sink({ level, provider, message: rawText(text) });
      if (typeof answer === "object" && answer !== null) Promise.resolve(answer).catch(() => {});
    } catch {
      // A sink that fails must not become the subscriber's failure.
    }
  };
  return Object.freeze({ debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") });
}

function describe(value: unknown): string {
  if (value instanceof Error) return thrownText(value);
  return typeof value === "object" && value !== null ? JSON.stringify(value) : String(value);
}
