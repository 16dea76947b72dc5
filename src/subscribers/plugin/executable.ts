/** Whether a file can be started at all, said better than the system would. */

import { constants } from "node:fs";
import { access, open, stat } from "node:fs/promises";
import { quoted } from "../../goplugin/quote.js";

export type Unfit = { readonly what: string; readonly hint?: string };

/** What is wrong with it, or null. */
export async function unfitExecutable(path: string): Promise<Unfit | null> {
  try {
    if (!(await stat(path)).isFile()) return { what: `${quoted(path)} is not a file` };
    await access(path, constants.X_OK);
  } catch (error) {
    switch (codeOf(error)) {
      case "ENOENT":
      case "ENOTDIR":
        return { what: `there is no file ${quoted(path)}` };
      case "EACCES":
        return {
          what: `${quoted(path)} is not executable`,
          hint: "A plugin is a file that may be executed: chmod +x.",
        };
      default:
        return { what: `${quoted(path)} cannot be looked at: ${codeOf(error)}` };
    }
  }
  if (await isProgram(path)) return null;
  return {
    what: `${quoted(path)} is neither a program nor a script that begins with #!`,
    hint: "A plugin in Node begins with the line #!/usr/bin/env node",
  };
}

/** ELF, and Mach-O in its four spellings: for one processor and for several. */
const MAGIC = ["7f454c46", "cffaedfe", "feedfacf", "cafebabe", "cafebabf"];

/** A shell that is asked to start anything else takes it for its own commands. What may be run and not read passes. */
async function isProgram(path: string): Promise<boolean> {
  try {
    const file = await open(path);
    try {
      const { buffer, bytesRead } = await file.read(Buffer.alloc(4), 0, 4, 0);
      const head = buffer.subarray(0, bytesRead);
      return head.subarray(0, 2).toString("latin1") === "#!" || MAGIC.includes(head.toString("hex"));
    } finally {
      await file.close();
    }
  } catch {
    return true;
  }
}

/** Of a system error, its name. */
export function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : "unknown error";
}
