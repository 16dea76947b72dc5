/** The plugin that `init --plugin` writes. */
export const PLUGIN_MODULE = `#!/usr/bin/env node
// @ts-check
// A plugin: a process of its own, which the kernel starts, asks and stops. agent.hcl says which of these handlers are called.
//
// \`payload\` is frozen: return a new object to change something. \`ctx\` has point, mode, session, turn, config (the provider
// block), signal, remainingMs() and log. Whatever else is printed goes to the log, too.

/** @import { ContentBlock } from "hookledger" */
/** @import { HookHandlers } from "hookledger/plugin" */
import { servePlugin } from "hookledger/plugin";

const EMAIL = /(?<![\\w.+-])[\\w.+-]{1,64}@[\\w-]+(?:\\.[\\w-]+)+/g;

/** @type {HookHandlers} */
const hooks = {
  "pre-model-call": {
    // Only \`messages\` may change here. If this throws, the dispatch is aborted and no model is asked.
    transform(payload) {
      const messages = payload.messages.map((message) => ({ ...message, content: message.content.map(withoutEmails) }));
      return { ...payload, messages };
    },
  },

  "plan-ready": {
    // "allow", "deny", or an object with a reason. If this throws or takes too long, that is a deny.
    veto({ plan }, ctx) {
      const count = plan?.items.length ?? 0;
      const limit = Number(ctx.config.max_items ?? 20);
      if (count <= limit) return "allow";
      ctx.log.warn(\`\${count} items, \${limit} are allowed\`);
      return { decision: "deny", reason: \`\${count} items are too many for one plan\` };
    },
  },
};

/** @param {ContentBlock} block */
function withoutEmails(block) {
  if (block.text === undefined) return block;
  return { ...block, text: { ...block.text, text: block.text.text.replace(EMAIL, "[email]") } };
}

await servePlugin({ name: "guard", version: "0.1.0", hooks });
`;
