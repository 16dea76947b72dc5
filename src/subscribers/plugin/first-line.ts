/** The handshake line, which is the first that a plugin writes to stdout. What follows is read on, as what it prints. */

import type { Socket } from "node:net";
import { MAX_HANDSHAKE_BYTES } from "../../goplugin/handshake.js";
import type { LogStream } from "./plugin-log.js";

const NEWLINE = 10;

/** Where there is no line: what came instead, at most 65 537 bytes of it. */
export type FirstLine =
  | { readonly found: "line"; readonly text: string }
  | { readonly found: "overlong" | "unended"; readonly text: string };

export class FirstLineReader {
  /** Never resolves while the plugin says nothing. */
  readonly line: Promise<FirstLine>;
  #held: Buffer | null = Buffer.alloc(0);

  constructor(stdout: Socket, rest: LogStream) {
    this.line = new Promise((resolve) => {
      const found = (line: FirstLine, after: Buffer): void => {
        this.#held = null;
        resolve(line);
        rest.push(after);
      };
      stdout.on("data", (chunk: Buffer) => {
        if (this.#held === null) return rest.push(chunk);
        const held = Buffer.concat([this.#held, chunk]);
        const end = held.indexOf(NEWLINE);
        if (end !== -1 && end <= MAX_HANDSHAKE_BYTES) {
          found({ found: "line", text: held.toString("utf8", 0, end) }, held.subarray(end + 1));
        } else if (held.length > MAX_HANDSHAKE_BYTES) {
          found({ found: "overlong", text: held.toString("utf8", 0, MAX_HANDSHAKE_BYTES) }, held);
        } else {
          this.#held = held;
        }
      });
      stdout.once("close", () => {
        if (this.#held !== null && this.#held.length > 0) resolve({ found: "unended", text: this.soFar });
        rest.end();
      });
    });
  }

  /** What there is of a line that has no end yet. */
  get soFar(): string {
    return this.#held?.toString("utf8") ?? "";
  }
}
