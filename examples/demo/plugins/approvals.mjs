#!/usr/bin/env node
// A veto: whatever does more than read is put to a person. Today nobody answers, and the call hangs.
import { servePlugin } from "hookledger/plugin";

const HARMLESS = new Set(["read_file", "list_files"]);

await servePlugin({
  name: "approvals",
  version: "1.0.0",
  hooks: {
    "pre-tool-call": {
      async veto({ call }, { log }) {
        if (HARMLESS.has(call.toolName)) {
          log.info(`process ${process.pid} lets ${call.toolName} pass`);
          return "allow";
        }
        log.info(`process ${process.pid} asks about ${call.toolName}`);
        return (await askInChat(call)) ? "allow" : { decision: "deny", reason: "somebody said no" };
      },
    },
  },
});

/** The chat service took the question, and never comes back with an answer. */
function askInChat() {
  return new Promise(() => {});
}
