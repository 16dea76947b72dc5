/** One command line in this process, on streams that keep what is printed. */
import type { CommandFile } from "#src/cli/command.js";
import { asReported, type ExitCode, exitCodeOf } from "#src/cli/exit.js";
import { reportFailure } from "#src/cli/failure.js";
import type { Host } from "#src/cli/host.js";
import { Output, type OutputStream } from "#src/cli/output.js";
import { runProgram, scanGlobalFlags } from "#src/cli/program.js";

export type Ran = { readonly code: ExitCode; readonly stdout: string; readonly stderr: string };

const HOST: Host = {
  env: {},
  stdin: (async function* () {})(),
  contain() {
    throw new Error("no modules run in this command");
  },
  onInterrupt() {},
  failWith() {},
};

/** `columns`: of a terminal that has no colours. */
export async function runCommand(command: CommandFile, argv: readonly string[], columns?: number): Promise<Ran> {
  const stdout = new KeptStream(columns);
  const stderr = new KeptStream();
  const outputWith = (flags: ReturnType<typeof scanGlobalFlags>) =>
    new Output({ stdout, stderr, env: { TERM: "dumb" }, ...flags });
  const out = outputWith(scanGlobalFlags(argv));
  let code: ExitCode;
  try {
    code = await runProgram(argv, { commands: [command], host: HOST, outputWith });
  } catch (thrown) {
    const error = asReported(thrown);
    await reportFailure(out, error);
    code = exitCodeOf(error.code);
  }
  return { code, stdout: stdout.text, stderr: stderr.text };
}

class KeptStream implements OutputStream {
  text = "";
  readonly isTTY: boolean;
  readonly columns: number;

  constructor(columns?: number) {
    this.isTTY = columns !== undefined;
    this.columns = columns ?? 0;
  }

  write(text: string, done: (error?: Error | null) => void): boolean {
    this.text += text;
    queueMicrotask(done);
    return true;
  }

  on(): void {}
}
