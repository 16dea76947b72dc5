import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/** Programs of the genuine hashicorp/go-plugin: absolute paths. */
export type GoPrograms = {
  /** A plugin that behaves as its arguments and its payloads say. */
  readonly plugin: string;
  /** A host that does what its standard input says. */
  readonly host: string;
  /** examples/approval-gate. */
  readonly gate: string;
};

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));
const PROTOS = join(ROOT, "proto");
/** Makes Go packages of proto files, for plugin authors too. */
const GENERATE = join(ROOT, "examples/approval-gate/generate.sh");
const CACHE = join(ROOT, "node_modules/.cache/hookledger-goplugin");
/** Debian's Go packages. */
const DEBIAN = "/usr/share/gocode";
const MODULE = "hookledger.example";
const SOURCES: Readonly<Record<string, string>> = {
  peer: join(ROOT, "test/interop/goplugin/peer"),
  peerplugin: join(ROOT, "test/interop/goplugin/peerplugin"),
  peerhost: join(ROOT, "test/interop/goplugin/peerhost"),
  "approval-gate": join(ROOT, "examples/approval-gate"),
};
const PROGRAMS = ["peerplugin", "peerhost", "approval-gate"];

/**
 * Builds whatever has changed since it was last built, from the project's own files and Debian's packages: nothing is fetched.
 * Takes a quarter of a minute the first time, which vitest's global set-up spends; afterwards only reads the sources.
 */
export function buildGoPrograms(): GoPrograms {
  const sources = gather();
  const built = join(CACHE, digest(sources));
  if (!existsSync(built)) {
    mkdirSync(CACHE, { recursive: true });
    const folder = mkdtempSync(join(CACHE, "building-"));
    try {
      build(folder, sources);
      // Whoever comes second finds the folder there, as good as its own.
      renameSync(join(folder, "bin"), built);
    } catch (error) {
      if (!existsSync(built)) throw error;
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  }
  return {
    plugin: join(built, "peerplugin"),
    host: join(built, "peerhost"),
    gate: join(built, "approval-gate"),
  };
}

/** What gofmt would write otherwise, by file; empty when all is well. */
export function misformatted(): string {
  return execFileSync("gofmt", ["-l", ...Object.values(SOURCES)], { encoding: "utf8" });
}

/** Text by its path in the Go workspace. */
type Sources = ReadonlyMap<string, string>;

function gather(): Sources {
  const sources = new Map<string, string>();
  for (const [name, folder] of Object.entries(SOURCES)) {
    for (const file of readdirSync(folder).filter((entry) => entry.endsWith(".go"))) {
      sources.set(`src/${MODULE}/${name}/${file}`, readFileSync(join(folder, file), "utf8"));
    }
  }
  for (const file of readdirSync(PROTOS, { recursive: true, encoding: "utf8" })) {
    if (file.endsWith(".proto")) sources.set(`proto/${file}`, readFileSync(join(PROTOS, file), "utf8"));
  }
  return sources;
}

function digest(sources: Sources): string {
  const hash = createHash("sha256");
  for (const script of [fileURLToPath(import.meta.url), GENERATE]) hash.update(readFileSync(script));
  for (const path of [...sources.keys()].sort()) hash.update(`\0${path}\0${sources.get(path)}`);
  return hash.digest("hex").slice(0, 16);
}

function build(folder: string, sources: Sources): void {
  for (const [path, text] of sources) {
    mkdirSync(join(folder, dirname(path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  }
  // Debian's generator, whatever else is installed.
  const path = { PATH: "/usr/bin:/bin" };
  execFileSync("sh", [GENERATE, join(folder, "proto"), join(folder, "src", MODULE, "protocol")], { env: path });
  mkdirSync(join(folder, "bin"));
  const programs = PROGRAMS.map((name) => `${MODULE}/${name}`);
  execFileSync("go", ["build", "-ldflags=-s -w", "-o", "bin/", ...programs], {
    cwd: folder,
    env: {
      PATH: process.env["PATH"],
      HOME: folder,
      GO111MODULE: "off",
      GOPATH: `${folder}:${DEBIAN}`,
      GOCACHE: join(CACHE, "go-build"),
      GOFLAGS: "-trimpath",
      GOPROXY: "off",
      CGO_ENABLED: "0",
    },
    stdio: ["ignore", "inherit", "inherit"],
  });
}
