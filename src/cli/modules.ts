/** Subscribers' modules in this process: what they say and break goes to stderr, by name, redacted and on one line. */
import type { Containment } from "../subscribers/containment.js";
import type { LogSink } from "../subscribers/log.js";
import type { CommandCall } from "./command.js";
import type { Output } from "./output.js";
import { foreign } from "./text.js";

export function containModules({ host, out }: CommandCall): Containment {
  const log = logTo(out);
  return host.contain({
    onStray({ kind, subscriber, message }) {
      const what = `left ${kind === "rejection" ? "a" : "an"} ${kind} behind: ${message}`;
      log({ level: "warn", provider: subscriber ?? "a module", message: what });
    },
    onPrint({ subscriber, text }) {
      // A secret may have several lines: whole, it is known; line by line, it is not.
      for (const line of out.redacted(text).replace(/\n$/, "").split("\n"))
        log({ level: "info", provider: subscriber, message: line });
    },
  });
}

/** `debug` lines only with --verbose; the kernel's errors also with --quiet. */
export function logTo(out: Output): LogSink {
  return ({ level, provider, message }) => {
    const line = `${out.noteStyle.dim(`${foreign(provider)} ${level}:`)} ${foreign(out.redacted(message))}`;
    if (level === "debug") out.detail(line);
    else if (level === "error") out.error(line);
    else out.note(line);
  };
}
