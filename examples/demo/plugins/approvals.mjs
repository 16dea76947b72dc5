// A veto: whatever does more than read is put to a person. Today nobody answers, and the call hangs.
import { serve } from "./subscriber.mjs";

const HARMLESS = new Set(["read_file", "list_files"]);

serve(async ({ payload }) => {
  const { call } = payload.preToolCall;
  const approved = HARMLESS.has(call.toolName) || (await askInChat(call));
  return { veto: { decision: approved ? "HOOK_DECISION_ALLOW" : "HOOK_DECISION_DENY" } };
});

/** The chat service took the question, and never comes back with an answer. */
function askInChat() {
  return new Promise(() => {});
}
