import { lstat, mkdir, writeFile } from "node:fs/promises";
import { basename, dirname, join, relative, resolve } from "node:path";
import { HookledgerError } from "../errors.js";
import { thrownText } from "../subscribers/fault.js";
import { ENGINE_VERSION } from "../version.js";
import type { CommandFile } from "./command.js";
import { EXIT } from "./exit.js";
import { shellWord } from "./shell-word.js";
import { MODULE_STARTER } from "./templates/module-starter.js";
import { pluginStarter } from "./templates/plugin/starter.js";
import type { StarterFile } from "./templates/starter.js";
import { foreign } from "./text.js";

export const init: CommandFile = {
  name: "init",
  summary: "writes a commented starter, or a plugin with its test; never overwrites",
  args: "[dir]",
  options: [
    { flags: "--plugin", description: "a plugin of your own: a program, its test, and a configuration that starts it" },
  ],
  examples: [
    { command: "hookledger init", does: "start in this folder" },
    { command: "hookledger init agent", does: "start in a folder that need not be there yet" },
    { command: "hookledger init --plugin guard", does: "write a plugin in Node" },
  ],
  async run(call) {
    const { args, out } = call;
    const dir = args[0] ?? ".";
    const { files, next: commands } = call.flag("plugin") ? pluginStarter(hookledgerFrom(dir)) : MODULE_STARTER;
    await refuseToOverwrite(dir, files);
    for (const file of files) await writeNew(dir, file);
    const next = dir === "." ? commands : [`cd ${shellWord(dir)}`, ...commands];
    if (out.json) {
      await out.document({ dir, created: files.map(({ path }) => path), next });
      return EXIT.done;
    }
    const { style } = out;
    await out.print(
      [
        ...files.map(({ path, what }) => `${style.green("created")}  ${foreign(join(dir, path))}  ${style.dim(what)}`),
        "",
        "Next:",
        ...next.map((command) => `  ${style.cyan(foreign(command))}`),
      ].join("\n"),
    );
    return EXIT.done;
  },
};

const ROOT = dirname(dirname(import.meta.dirname));

/** As a dependency of a package in `dir`: this version, or this very clone, of which the registry may know nothing. */
function hookledgerFrom(dir: string): string {
  return basename(dirname(ROOT)) === "node_modules" ? `^${ENGINE_VERSION}` : `file:${relative(resolve(dir), ROOT)}`;
}

/** All or nothing: a starter among somebody's own files would be no use. Throws HL_USAGE. */
async function refuseToOverwrite(dir: string, files: readonly StarterFile[]): Promise<void> {
  for (const { path } of files) {
    const file = join(dir, path);
    if (!(await exists(file))) continue;
    throw new HookledgerError("HL_USAGE", `${file} exists already; nothing was written`, {
      hint: "Name another folder: hookledger init <dir>.",
    });
  }
}

async function exists(path: string): Promise<boolean> {
  try {
    await lstat(path);
    return true;
  } catch {
    return false;
  }
}

/** Exclusive: what came into being meanwhile is not overwritten either. Throws HL_USAGE. */
async function writeNew(dir: string, { path, text, executable }: StarterFile): Promise<void> {
  const file = join(dir, path);
  try {
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, text, { flag: "wx", mode: executable === true ? 0o755 : 0o666 });
  } catch (error) {
    throw new HookledgerError("HL_USAGE", `${file} cannot be written: ${thrownText(error)}`, { cause: error });
  }
}
