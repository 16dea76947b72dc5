import { type FileHandle, open, readdir, stat } from "node:fs/promises";
import { basename, join } from "node:path";
import { assemble } from "./assemble.js";
import { Diagnostics } from "./diagnostics.js";
import { type FileProbe, fileSystem } from "./file-probe.js";
import { type Document, parseSource } from "./parse.js";
import { SourceText } from "./source-text.js";
import type { ConfigResult, Diagnostic } from "./types.js";
import { decodeUtf8 } from "./utf8.js";

const MAX_FILE_BYTES = 1024 * 1024;
const MAX_FILES = 1024;

export type ConfigOptions = {
  /** For look-ups of the files that a configuration names; the real file system by default. */
  readonly probe?: FileProbe;
};

/** A file's path and content. Relative paths in it are relative to the path's folder. */
type ConfigFile = { readonly name: string; readonly text: string | Uint8Array };

/**
 * Reads a file, or the `*.hcl` files of a folder (not of folders in it, no hidden ones), in the order of the bytes of their base names.
 * Runs nothing, reads no environment and touches no other file but to look whether it is there.
 */
export async function loadConfig(path: string, options: ConfigOptions = {}): Promise<ConfigResult> {
  const read = await readFiles(path);
  return "files" in read ? parseConfig(read.files, options) : { ok: false, errors: [read.error], warnings: [] };
}

/** The same for files that are read already, in any order. */
export async function parseConfig(files: readonly ConfigFile[], options: ConfigOptions = {}): Promise<ConfigResult> {
  const decoded = [...files].sort(byBaseName).map(({ name, text }) => {
    const bytes = typeof text === "string" ? Buffer.from(text) : text;
    const tooLarge = bytes.byteLength > MAX_FILE_BYTES;
    const { text: prefix, invalidAt } = decodeUtf8(bytes.subarray(0, MAX_FILE_BYTES));
    return { source: new SourceText(name, prefix), tooLarge, invalidAt };
  });
  const report = new Diagnostics(decoded.map(({ source }) => source));
  const documents: Document[] = [];
  for (const { source, tooLarge, invalidAt } of decoded) {
    if (tooLarge) {
      report.error(source.place(0), "larger than 1 MiB", { code: "HL_LIMIT_CONFIG" });
    } else if (invalidAt !== undefined) {
      report.error(source.place(source.text.length), "not UTF-8", { hint: invalidAt });
    } else {
      documents.push(await parseSource(source, report));
      continue;
    }
    documents.push({ source, items: [], lost: ["*"] });
  }
  const config = assemble(documents, options.probe ?? fileSystem, report);
  const errors = report.list("error");
  const warnings = report.list("warning");
  return errors.length === 0 ? { ok: true, config, warnings } : { ok: false, errors, warnings };
}

type Read = { readonly files: readonly ConfigFile[] } | { readonly error: Diagnostic };

async function readFiles(path: string): Promise<Read> {
  let reading = path;
  try {
    if (!(await stat(path)).isDirectory()) return { files: [{ name: path, text: await readBounded(path) }] };
    const names = (await readdir(path)).filter((name) => /^[^.].*\.hcl$/s.test(name));
    if (names.length === 0) return unreadable(path, "holds no .hcl file");
    if (names.length > MAX_FILES) return unreadable(path, `holds more than ${MAX_FILES} .hcl files`);
    const files: ConfigFile[] = [];
    for (const name of names) {
      reading = join(path, name);
      files.push({ name: reading, text: await readBounded(reading) });
    }
    return { files };
  } catch (error) {
    return unreadable(reading, readFault(error));
  }
}

/** At most one byte more than is allowed, whatever the file grows to. */
async function readBounded(path: string): Promise<Uint8Array> {
  if (!(await stat(path)).isFile()) throw new NoFile();
  const file = await open(path);
  try {
    return await readUpTo(file, MAX_FILE_BYTES + 1);
  } finally {
    await file.close();
  }
}

async function readUpTo(file: FileHandle, limit: number): Promise<Uint8Array> {
  const buffer = new Uint8Array(limit);
  let length = 0;
  while (length < limit) {
    const { bytesRead } = await file.read(buffer, length, limit - length, null);
    if (bytesRead === 0) break;
    length += bytesRead;
  }
  return buffer.slice(0, length);
}

const MISSING = "does not exist";

class NoFile extends Error {}

function readFault(error: unknown): string {
  if (error instanceof NoFile) return "is no file";
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  switch (code) {
    case "ENOENT":
      return MISSING;
    case "EACCES":
    case "EPERM":
      return "may not be read";
    default:
      return `cannot be read (${typeof code === "string" ? code : "unknown error"})`;
  }
}

function unreadable(path: string, why: string): Read {
  const place = { file: path, line: 1, col: 1 };
  const error = { severity: "error", code: "HL_CONFIG_UNREADABLE", message: `${path} ${why}`, place } as const;
  return { error: why === MISSING ? { ...error, hint: "hookledger init writes a starter" } : error };
}

function byBaseName(a: ConfigFile, b: ConfigFile): number {
  return (
    Buffer.compare(Buffer.from(basename(a.name)), Buffer.from(basename(b.name))) ||
    Buffer.compare(Buffer.from(a.name), Buffer.from(b.name))
  );
}
