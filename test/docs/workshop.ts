/** A folder in which a document's examples are whole: its files, the package under its own name, and the command line. */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { startDouble } from "../support/eventstoredb/double.mjs";
import { type Block, type Document, ROOT } from "./documents.js";

export type Printed = { readonly code: number | null; readonly output: string };

export class Workshop {
  readonly folder: string;
  readonly #env: NodeJS.ProcessEnv;
  readonly #atEnd: (work: () => void) => void;

  /** `atEnd`: runs what it is given when the test is over, last first. */
  constructor(atEnd: (work: () => void) => void) {
    this.#atEnd = atEnd;
    this.folder = mkdtempSync(join(tmpdir(), "hookledger-docs-"));
    atEnd(() => rmSync(this.folder, { recursive: true, force: true }));
    mkdirSync(join(this.folder, "run"));
    const bin = join(this.folder, "bin");
    const main = join(ROOT, "dist/cli/main.js");
    this.write("bin/hookledger", `#!/bin/sh\nexec "${process.execPath}" "${main}" "$@"\n`);
    this.write("bin/npx", '#!/bin/sh\nexec "$@"\n');
    // What it would start is the double of `startServer`.
    this.write("bin/docker", "#!/bin/sh\n");
    for (const name of ["hookledger", "npx", "docker"]) chmodSync(join(bin, name), 0o755);
    const { HOOKLEDGER_STORE: _, FORCE_COLOR: __, ...env } = process.env;
    this.#env = { ...env, NO_COLOR: "1", PATH: `${bin}:${env["PATH"]}` };
    this.write("package.json", '{ "type": "module", "private": true }');
    installed(join(this.folder, "node_modules"));
  }

  /** `/run/` in the text is a folder of the workshop. */
  write(path: string, text: string): void {
    const file = join(this.folder, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text.replaceAll("/run/", `${this.folder}/run/`));
  }

  /** Every file that the document names, the TypeScript among them checked and compiled as strictly as we do. */
  writeFilesOf(document: Document): void {
    const names = document.blocks.flatMap((block) => {
      const path = fileOf(block);
      if (path !== null) this.write(path, block.text);
      return path === null ? [] : [path];
    });
    if (names.some((name) => name.endsWith(".ts"))) this.#compile();
  }

  run(program: string, args: readonly string[], folder = "."): Promise<Printed> {
    return new Promise((resolve) => {
      const child = spawn(program, args, { cwd: join(this.folder, folder), env: this.#env });
      let output = "";
      for (const stream of [child.stdout, child.stderr]) {
        stream.setEncoding("utf8").on("data", (text: string) => {
          output += text;
        });
      }
      child.on("close", (code) => resolve({ code, output }));
    });
  }

  node(path: string): Promise<Printed> {
    const file = path.slice(path.lastIndexOf("/") + 1).replace(/\.ts$/, ".js");
    return this.run(process.execPath, [file], dirname(path));
  }

  /** A double of an EventStoreDB until the test is over; its host and port. */
  async startServer(): Promise<string> {
    const double = await startDouble();
    this.#atEnd(() => void double.stop());
    const { address, port } = double.endpoint;
    return `${address}:${port}`;
  }

  /** Resolves once it has printed something. */
  async serve(path: string): Promise<void> {
    const child = spawn(process.execPath, [join(this.folder, path)], {
      cwd: join(this.folder, dirname(path)),
      env: this.#env,
      stdio: ["ignore", "pipe", "inherit"],
    });
    this.#atEnd(() => child.kill());
    await Promise.race([
      once(child.stdout, "data"),
      once(child, "exit").then(() => Promise.reject(new Error(`${path} ended before it was ready`))),
    ]);
  }

  #compile(): void {
    const compilerOptions = {
      target: "es2023",
      lib: ["es2024"],
      module: "nodenext",
      types: ["node"],
      typeRoots: [join(ROOT, "node_modules/@types")],
      strict: true,
      exactOptionalPropertyTypes: true,
      noUncheckedIndexedAccess: true,
      noUnusedLocals: true,
    };
    this.write("tsconfig.json", JSON.stringify({ compilerOptions, include: ["**/*.ts"] }));
    const tsc = join(ROOT, "node_modules/typescript/bin/tsc");
    const { status, stdout } = spawnSync(process.execPath, [tsc, "-p", this.folder], { encoding: "utf8" });
    if (status !== 0) throw new Error(stdout);
  }
}

function fileOf({ directive }: Block): string | null {
  return directive?.kind === "file" || directive?.kind === "serve" ? directive.path : null;
}

/** hookledger as one that was installed, and beside it what it was installed with. */
function installed(modules: string): void {
  mkdirSync(modules);
  const siblings = join(ROOT, "node_modules");
  for (const name of readdirSync(siblings))
    if (!name.startsWith(".")) symlinkSync(join(siblings, name), join(modules, name));
  symlinkSync(ROOT, join(modules, "hookledger"));
}

/** Does a text have all that a document says of it? `…` stands for anything. */
export function expectedText(said: string): RegExp {
  const parts = said.trimEnd().split("…");
  return new RegExp(`^${parts.map((part) => part.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&")).join("[\\s\\S]*?")}\\s*$`);
}
