// One realistic tool call and one realistic conversation, and the configurations that the benchmarks run.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export const toolCall = {
  preToolCall: {
    call: {
      id: "call-0001",
      toolName: "read_file",
      arguments: { path: "src/index.ts", offset: 0, limit: 200 },
      callContext: { sessionId: "session-1", turnId: "turn-1", workingDirectory: "/srv/app" },
    },
  },
};

export function folder() {
  const path = mkdtempSync(join(tmpdir(), "hookledger-bench-"));
  process.on("exit", () => rmSync(path, { recursive: true, force: true }));
  return path;
}

const MODES = ["observe", "veto", "observe", "veto", "observe"];

/** agent.hcl with five hooks of one provider at pre-tool-call; returns its path. */
export function fiveHooks(path, source) {
  const hooks = MODES.map(
    (mode, i) => `hook "pre-tool-call" {\n  provider = "five"\n  id       = "h${i}"\n  mode     = "${mode}"\n}`,
  );
  const file = join(path, "agent.hcl");
  writeFileSync(file, `required_providers {\n  five = { source = "${source}" }\n}\n${hooks.join("\n")}\n`);
  return file;
}

export const handlers = {
  "pre-tool-call": {
    observe() {},
    veto() {
      return "allow";
    },
  },
};
