/** What a plugin writes, as lines of our log. */

import type { Logger } from "../log.js";

export type LogLine = {
  readonly level: keyof Logger;
  readonly message: string;
  /** It said so itself. */
  readonly labelled: boolean;
};

const LEVELS = new Map<string, keyof Logger>([
  ["trace", "debug"],
  ["debug", "debug"],
  ["info", "info"],
  ["warn", "warn"],
  ["warning", "warn"],
  ["err", "error"],
  ["error", "error"],
  ["fatal", "error"],
]);

/**
 * JSON as hclog writes it, or a line with a level in brackets, behind a date or not. Anything else is for debugging. A logger that is
 * named as `provider` is not named again.
 */
export function readLogLine(text: string, provider?: string): LogLine {
  return (
    (text.startsWith("{") ? fromJson(text, provider) : fromPrefix(text)) ?? {
      level: "debug",
      message: text,
      labelled: false,
    }
  );
}

const PREFIXED = /^(?:[\d/:.TZ+-]{8,40} ){0,2}\[(?<label>[A-Z]{3,7})\]\s*(?<message>.*)$/s;

function fromPrefix(text: string): LogLine | null {
  const { label = "", message = "" } = PREFIXED.exec(text)?.groups ?? {};
  const level = LEVELS.get(label.toLowerCase());
  return level === undefined ? null : { level, message, labelled: true };
}

function fromJson(text: string, provider: string | undefined): LogLine | null {
  try {
    const entry: unknown = JSON.parse(text);
    if (typeof entry !== "object" || entry === null) return null;
    const members = new Map<string, unknown>(Object.entries(entry));
    const message = members.get("@message");
    const label = members.get("@level");
    if (typeof message !== "string" || typeof label !== "string") return null;
    const module = members.get("@module");
    for (const known of ["@message", "@level", "@module", "@timestamp"]) members.delete(known);
    const fields = [...members].map(([key, value]) => ` ${key}=${shown(value)}`).join("");
    const prefix = typeof module === "string" && module !== "" && module !== provider ? `${module}: ` : "";
    return { level: LEVELS.get(label.toLowerCase()) ?? "info", message: prefix + message + fields, labelled: true };
  } catch {
    // No JSON, or deeper than it can be written back.
    return null;
  }
}

function shown(value: unknown): string {
  return typeof value === "string" && /^[^\s"=]+$/.test(value) ? value : JSON.stringify(value);
}
