import { accessSync, constants, realpathSync, statSync } from "node:fs";
import { isAbsolute, relative, resolve, sep } from "node:path";
import type { Place } from "../errors.js";
import { type Diagnostics, quoted } from "./diagnostics.js";

/** What reading a configuration may ask of the file system. Nothing is opened. */
export interface FileProbe {
  /** The path without links; undefined where nothing is. */
  realPath(path: string): string | undefined;
  isFile(path: string): boolean;
  isExecutable(path: string): boolean;
}

export const fileSystem: FileProbe = {
  realPath: (path) => attempt(() => realpathSync(path)),
  isFile: (path) => attempt(() => statSync(path).isFile()) ?? false,
  isExecutable: (path) => attempt(() => accessSync(path, constants.X_OK) === undefined) ?? false,
};

export type FileUse = "file" | "executable";

/**
 * The absolute path that `written` stands for, seen from a configuration's folder: without links where it exists. A relative
 * path must stay inside that folder, links included; an absolute one may lie anywhere. A file that is missing or of the
 * wrong kind is a warning, for reading a configuration runs nothing.
 */
export function locate(written: string, { folder, probe, report, place, use }: Location): string | undefined {
  const path = resolve(folder, written);
  const real = probe.realPath(path);
  const base = probe.realPath(folder) ?? folder;
  const leaves = !isInside(folder, path) || (real !== undefined && !isInside(base, real));
  if (!isAbsolute(written) && leaves) {
    report.error(place, `${quoted(written)} leaves the folder of the configuration`, {
      hint: "write an absolute path to name a file elsewhere",
    });
    return undefined;
  }
  if (real === undefined) report.warning(place, `${quoted(written)} does not exist`);
  else if (!probe.isFile(real)) report.warning(place, `${quoted(written)} is not a file`);
  else if (use === "executable" && !probe.isExecutable(real)) {
    report.warning(place, `${quoted(written)} is not executable`, { hint: `chmod +x ${written}` });
  }
  return real ?? path;
}

type Location = {
  /** Absolute: where the file that holds the entry lies. */
  readonly folder: string;
  readonly probe: FileProbe;
  readonly report: Diagnostics;
  readonly place: Place;
  readonly use: FileUse;
};

function isInside(folder: string, path: string): boolean {
  const way = relative(folder, path);
  return way !== "" && way !== ".." && !way.startsWith(`..${sep}`) && !isAbsolute(way);
}

function attempt<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}
