/** The host's log as what is written to it goes there: redacted, bounded, with controls escaped. */

import type { Redactor } from "../payload/redaction.js";
import { boundedMessage, MAX_RAW_TEXT } from "../payload/text.js";
import type { LogSink } from "../subscribers/log.js";

export function hostLog(log: LogSink, redactor: Pick<Redactor, "text">): LogSink {
  return (line) => log({ ...line, message: boundedMessage(redactor.text(line.message), MAX_RAW_TEXT) });
}
