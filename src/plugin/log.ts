/** Lines on stderr: JSON as hclog writes it for a host, plain text for a developer's terminal. */

import type { LogSink } from "../subscribers/log.js";

/** UTF-16 units. A line stays under 64 KiB, where go-plugin's hosts would cut it and read the pieces as text. */
const MAX_MESSAGE = 10_000;

export const hclogSink: LogSink = ({ level, provider, message }) => {
  const line = {
    "@level": level,
    "@message": message.slice(0, MAX_MESSAGE).toWellFormed(),
    "@module": provider,
    // hclog reads exactly six digits of a second.
    "@timestamp": new Date().toISOString().replace("Z", "000Z"),
  };
  process.stderr.write(`${JSON.stringify(line)}\n`);
};

export const textSink: LogSink = ({ level, provider, message }) => {
  process.stderr.write(`[${level.toUpperCase()}] ${provider}: ${message}\n`);
};
