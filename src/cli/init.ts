import { lstat, mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { HookledgerError } from "../errors.js";
import { thrownText } from "../subscribers/fault.js";
import type { CommandFile } from "./command.js";
import { EXIT } from "./exit.js";
import { AGENT_HCL } from "./templates/agent-hcl.js";
import { GUARD_MODULE } from "./templates/guard-module.js";
import { PLAN_PAYLOAD } from "./templates/plan-payload.js";
import { foreign } from "./text.js";

const FILES = [
  { path: "agent.hcl", text: AGENT_HCL, what: "who subscribes where, policy, settings" },
  { path: "hooks/guard.mjs", text: GUARD_MODULE, what: "a subscriber" },
  { path: "payloads/plan-ready.json", text: PLAN_PAYLOAD, what: "a payload to dispatch" },
] as const;

export const init: CommandFile = {
  name: "init",
  summary: "writes a commented starter: configuration, subscriber, payload; never overwrites",
  args: "[dir]",
  options: [],
  examples: [
    { command: "hookledger init", does: "start in this folder" },
    { command: "hookledger init agent", does: "start in a folder that need not be there yet" },
  ],
  async run({ args, out }) {
    const dir = args[0] ?? ".";
    await refuseToOverwrite(dir);
    for (const { path, text } of FILES) await writeNew(join(dir, path), text);
    const next = nextCommands(dir);
    if (out.json) {
      await out.document({ dir, created: FILES.map(({ path }) => path), next });
      return EXIT.done;
    }
    const { style } = out;
    await out.print(
      [
        ...FILES.map(({ path, what }) => `${style.green("created")}  ${foreign(join(dir, path))}  ${style.dim(what)}`),
        "",
        "Next:",
        ...next.map((command) => `  ${style.cyan(foreign(command))}`),
      ].join("\n"),
    );
    return EXIT.done;
  },
};

function nextCommands(dir: string): readonly string[] {
  return [
    ...(dir === "." ? [] : [`cd ${/^[\w./-]+$/.test(dir) ? dir : `'${dir.replaceAll("'", "'\\''")}'`}`]),
    "hookledger validate --load",
    "hookledger dispatch --payload payloads/plan-ready.json",
    "hookledger list",
    "hookledger verify --all",
  ];
}

/** All or nothing: a starter among somebody's own files would be no use. Throws HL_USAGE. */
async function refuseToOverwrite(dir: string): Promise<void> {
  for (const { path } of FILES) {
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
async function writeNew(path: string, text: string): Promise<void> {
  try {
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, text, { flag: "wx" });
  } catch (error) {
    throw new HookledgerError("HL_USAGE", `${path} cannot be written: ${thrownText(error)}`, { cause: error });
  }
}
