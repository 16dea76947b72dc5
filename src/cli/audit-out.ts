/** Where an export is written: stdout, or a file that appears whole or not at all. */
import { randomBytes } from "node:crypto";
import { rmSync, statSync } from "node:fs";
import { type FileHandle, open, realpath, rename } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { HookledgerError } from "../errors.js";
import type { Output } from "./output.js";

export interface ExportTarget {
  /** Whole lines, without the last line break. False: nobody reads on. Throws HL_OUTPUT. */
  write(lines: string): Promise<boolean>;
  /** All is written. Throws HL_OUTPUT. */
  finish(): Promise<void>;
  /** Leaves no trace; does nothing after `finish`. */
  discard(): Promise<void>;
}

export function stdoutTarget(out: Output): ExportTarget {
  return {
    write: (lines) => out.print(lines),
    finish: async () => {},
    discard: async () => {},
  };
}

/** Readable by its owner alone; what stood at `path` is replaced at the end, in one step. Throws HL_USAGE where no file can stand. */
export async function fileTarget(path: string): Promise<ExportTarget> {
  try {
    const final = await placeOf(path);
    const temporary = join(dirname(final), `.${basename(final)}.${randomBytes(6).toString("hex")}.tmp`);
    return new FileTarget(final, temporary, await open(temporary, "wx", 0o600));
  } catch (error) {
    if (error instanceof HookledgerError) throw error;
    throw new HookledgerError("HL_USAGE", `--out ${path} cannot be written: ${reasonOf(error)}`, { cause: error });
  }
}

/** A link is followed: the file it names is replaced, not the link. */
async function placeOf(path: string): Promise<string> {
  const there = statSync(path, { throwIfNoEntry: false });
  if (there === undefined) return join(await realpath(dirname(resolve(path))), basename(resolve(path)));
  if (!there.isFile()) throw new HookledgerError("HL_USAGE", `--out ${path} is no regular file`);
  if (await isDatabase(path)) throw new HookledgerError("HL_USAGE", `--out ${path} is a database, and stays as it is`);
  return realpath(path);
}

const SQLITE = "SQLite format 3\0";

/** A ledger is never replaced by its own export. */
async function isDatabase(path: string): Promise<boolean> {
  const file = await open(path, "r");
  try {
    const { buffer } = await file.read(Buffer.alloc(SQLITE.length), 0, SQLITE.length, 0);
    return buffer.toString("latin1") === SQLITE;
  } finally {
    await file.close();
  }
}

class FileTarget implements ExportTarget {
  readonly #final: string;
  readonly #temporary: string;
  readonly #file: FileHandle;
  readonly #removeAtExit = (): void => rmSync(this.#temporary, { force: true });
  #done = false;

  constructor(final: string, temporary: string, file: FileHandle) {
    this.#final = final;
    this.#temporary = temporary;
    this.#file = file;
    process.once("exit", this.#removeAtExit);
  }

  async write(lines: string): Promise<boolean> {
    await this.#doing(() => this.#file.appendFile(`${lines}\n`));
    return true;
  }

  async finish(): Promise<void> {
    await this.#doing(async () => {
      await this.#file.sync();
      await this.#file.close();
      await rename(this.#temporary, this.#final);
    });
    this.#letGo();
  }

  async discard(): Promise<void> {
    if (this.#done) return;
    await this.#file.close().catch(() => {});
    this.#removeAtExit();
    this.#letGo();
  }

  #letGo(): void {
    this.#done = true;
    process.off("exit", this.#removeAtExit);
  }

  async #doing(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      throw new HookledgerError("HL_OUTPUT", `${this.#final} cannot be written: ${reasonOf(error)}`, { cause: error });
    }
  }
}

const REASONS: ReadonlyMap<unknown, string> = new Map([
  ["ENOENT", "its folder does not exist"],
  ["ENOTDIR", "its folder is a file"],
  ["EACCES", "permission denied"],
  ["EPERM", "permission denied"],
  ["EROFS", "the disk is read-only"],
  ["ENOSPC", "the disk is full"],
  ["EDQUOT", "the quota is used up"],
]);

function reasonOf(error: unknown): string {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  return REASONS.get(code) ?? (error instanceof Error ? error.message : String(error));
}
