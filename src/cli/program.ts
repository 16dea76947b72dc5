/** The command line as commander sees it: global options, one command a file, and usage errors in our words. */
import { Command, CommanderError, Option } from "commander";
import { HookledgerError } from "../errors.js";
import { ENGINE_VERSION } from "../version.js";
import { CommandCall, type CommandFile, type Example } from "./command.js";
import { EXIT, type ExitCode } from "./exit.js";
import type { Host } from "./host.js";
import type { Output } from "./output.js";

const DEFAULT_STORE = "sqlite:.hookledger/ledger.db";
const DEFAULT_CONFIG = "agent.hcl";

export type GlobalFlags = {
  readonly json: boolean;
  readonly quiet: boolean;
  readonly verbose: boolean;
  readonly color: boolean;
};

type ProgramParts = {
  readonly commands: readonly CommandFile[];
  readonly host: Host;
  readonly outputWith: (flags: GlobalFlags) => Output;
};

const GROUPS: ReadonlyMap<string, string> = new Map([
  ["audit", "what auditors ask of the ledger"],
  ["queue", "messages that are to be delivered, and what became of them"],
]);

/** Runs one command line, without `node` and the script. Throws HookledgerError; HL_USAGE where it cannot be understood. */
export async function runProgram(argv: readonly string[], parts: ProgramParts): Promise<ExitCode> {
  let code: ExitCode | null = null;
  const program = globalCommand();
  const groups = new Map<string, Command>();
  for (const file of parts.commands) {
    const words = file.name.split(" ");
    const parent = words.length === 1 ? program : groupOf(words[0] ?? "", program, groups);
    addCommand(parent, words.at(-1) ?? "", file, async (args, command) => {
      code = await file.run(callOf(args, command, parts));
    });
  }
  const { printed, stopped } = capture(program);
  try {
    await program.parseAsync([...argv], { from: "user" });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    const asked = printed().trimEnd();
    if (asked === "") throw usageError(error, stopped());
    await parts.outputWith(globalFlags(program)).print(asked);
    return EXIT.done;
  }
  if (code === null) throw new HookledgerError("HL_INTERNAL", "the command came to no end");
  return code;
}

/** The global flags of a command line that may not be understood otherwise: how its failure is to be told. */
export function scanGlobalFlags(argv: readonly string[]): GlobalFlags {
  const end = argv.indexOf("--");
  const words = new Set(end === -1 ? argv : argv.slice(0, end));
  return {
    json: words.has("--json"),
    quiet: words.has("--quiet"),
    verbose: words.has("--verbose"),
    color: !words.has("--no-color"),
  };
}

function globalCommand(): Command {
  return new Command("hookledger")
    .description("Dispatches the hook points of an agent harness, records every dispatch, and proves it by replay.")
    .version(ENGINE_VERSION, "--version", "print the version")
    .helpOption("-h, --help", "print help")
    .helpCommand("help [command]", "print the help of a command")
    .addOption(
      new Option(
        "--store <url>",
        `sqlite:<path>, esdb://…, memory: or bundle:<path> (env HOOKLEDGER_STORE; default ${DEFAULT_STORE})`,
      ),
    )
    .addOption(
      new Option("--config <path>", `configuration, a file or a folder of *.hcl (default ./${DEFAULT_CONFIG})`),
    )
    .option("--json", "print JSON on stdout and nothing else")
    .option("--no-color", "print without colours (also: env NO_COLOR)")
    .option("--quiet", "print no progress and no notes")
    .option("--verbose", "print details and stack traces")
    .configureHelp({ showGlobalOptions: true });
}

function groupOf(name: string, program: Command, groups: Map<string, Command>): Command {
  const known = groups.get(name);
  if (known !== undefined) return known;
  const group = program.command(name).description(GROUPS.get(name) ?? name);
  groups.set(name, group);
  return group;
}

function addCommand(
  parent: Command,
  word: string,
  file: CommandFile,
  run: (args: readonly string[], command: Command) => Promise<void>,
): void {
  const command = parent.command(file.args === undefined ? word : `${word} ${file.args}`).description(file.summary);
  for (const { flags, description } of file.options) command.option(flags, description);
  command.addHelpText("after", `\n${examplesText(file.examples)}`);
  command.action(() => run(command.processedArgs.flatMap(words), command));
}

/** Commander hands over a text, a list of them for a variadic argument, or nothing. */
function words(arg: unknown): readonly string[] {
  if (typeof arg === "string") return [arg];
  return Array.isArray(arg) ? arg.filter((word) => typeof word === "string") : [];
}

function examplesText(examples: readonly Example[]): string {
  return ["Examples:", ...examples.flatMap(({ command, does }) => [`  # ${does}`, `  $ ${command}`])].join("\n");
}

function callOf(args: readonly string[], command: Command, { host, outputWith }: ProgramParts): CommandCall {
  const options = new Map<string, string | boolean>();
  for (const [name, value] of Object.entries(command.optsWithGlobals())) {
    if (typeof value === "string" || typeof value === "boolean") options.set(name, value);
  }
  const text = (name: string) => {
    const value = options.get(name);
    return typeof value === "string" ? value : undefined;
  };
  return new CommandCall({
    out: outputWith(globalFlags(command)),
    host,
    store: text("store") ?? (host.env["HOOKLEDGER_STORE"] || DEFAULT_STORE),
    config: text("config") ?? DEFAULT_CONFIG,
    args,
    options,
  });
}

function globalFlags(command: Command): GlobalFlags {
  const { json, quiet, verbose, color } = command.optsWithGlobals();
  return { json: json === true, quiet: quiet === true, verbose: verbose === true, color: color !== false };
}

type Captured = {
  /** Help and version that were asked for; empty where commander gives up. */
  readonly printed: () => string;
  /** The command that commander ended at. */
  readonly stopped: () => Command;
};

/** Commander's own printing, kept: help is a result and goes where results go. Its exit codes are none of ours. */
function capture(program: Command): Captured {
  let text = "";
  let at = program;
  const configure = (command: Command): void => {
    command
      .configureOutput({
        writeOut: (written) => {
          text += written;
        },
        writeErr: () => {},
      })
      .exitOverride((error) => {
        at = command;
        throw error;
      });
    for (const child of command.commands) configure(child);
  };
  configure(program);
  return { printed: () => text, stopped: () => at };
}

function usageError(error: CommanderError, command: Command): HookledgerError {
  const help = `${pathOf(command)} --help`;
  if (error.code === "commander.help") {
    const [, unknown] = command.args;
    const message = unknown === undefined ? "no command given" : `unknown command '${unknown}'`;
    return new HookledgerError("HL_USAGE", message, { hint: `${help} lists the commands.` });
  }
  const [message = "", ...rest] = error.message.replace(/^error: /, "").split("\n");
  const suggestion = rest
    .join(" ")
    .replace(/^\((.*)\)$/, "$1")
    .trim();
  return new HookledgerError("HL_USAGE", message, {
    hint: suggestion === "" ? `${help} shows what there is.` : suggestion,
  });
}

/** As it is typed: `hookledger audit export`. */
function pathOf(command: Command): string {
  return command.parent === null ? command.name() : `${pathOf(command.parent)} ${command.name()}`;
}
