#!/usr/bin/env node
import { setFlagsFromString } from "node:v8";
import { COMMANDS } from "./commands.js";
import { asReported, type ExitCode, exitCodeOf } from "./exit.js";
import { reportFailure } from "./failure.js";
import { ProcessHost } from "./host.js";
import { Output, type OutputStream } from "./output.js";
import { type GlobalFlags, runProgram, scanGlobalFlags } from "./program.js";

// The one wasm module here, the grammar of agent.hcl, runs for milliseconds: optimising it takes longer than it saves.
setFlagsFromString("--liftoff-only");

const argv = process.argv.slice(2);
const host = new ProcessHost();
const stdout = own(process.stdout);
const stderr = own(process.stderr);
let out = outputWith(scanGlobalFlags(argv));

process.on("uncaughtException", (error) => {
  // While modules run, their stray faults are theirs.
  if (!host.contained) void end(error);
});

function outputWith(flags: GlobalFlags): Output {
  return new Output({ stdout, stderr, env: process.env, ...flags });
}

/** The stream as it is now, whatever a module or its containment makes of it later. */
function own(stream: NodeJS.WriteStream): OutputStream {
  const { isTTY, columns } = stream;
  return { isTTY, columns, write: stream.write.bind(stream), on: stream.on.bind(stream) };
}

async function end(thrown: unknown): Promise<void> {
  const error = asReported(thrown);
  try {
    await reportFailure(out, error);
    await out.flush();
  } catch {
    // Where the failure cannot be told, there is still its code.
  }
  host.exit(exitCodeOf(error.code));
}

async function run(): Promise<ExitCode> {
  const code = await runProgram(argv, {
    commands: COMMANDS,
    host,
    outputWith(flags) {
      out = outputWith(flags);
      return out;
    },
  });
  await out.flush();
  return code;
}

run().then((code) => host.exit(code), end);
