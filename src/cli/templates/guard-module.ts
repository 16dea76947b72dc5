/** The subscriber that `init` writes. */
export const GUARD_MODULE = `// A subscriber: one property a hook point, one function a mode. agent.hcl says which of them are called.
//
// \`payload\` is frozen and shared with others: return a new object to change something. \`ctx\` has point, mode, session,
// turn, config (the provider block), signal, remainingMs() and log. Do not print to stdout; use ctx.log.

const EMAIL = /(?<![\\w.+-])[\\w.+-]{1,64}@[\\w-]+(?:\\.[\\w-]+)+/g;

export default {
  "pre-model-call": {
    // Only \`messages\` may change here.
    transform(payload) {
      return { ...payload, messages: payload.messages.map(withoutEmails) };
    },
  },

  "plan-ready": {
    // "allow", "deny", or an object with a reason. An allow never lifts what policy or anybody before has denied.
    veto(payload, ctx) {
      const count = payload.plan?.items.length ?? 0;
      if (count > ctx.config.max_items) return { decision: "deny", reason: \`\${count} items are too many for one plan\` };
      return "allow";
    },
  },

  "post-tool-call": {
    // What an observer returns is ignored.
    observe(payload, ctx) {
      ctx.log.info(\`\${payload.call?.toolName} \${payload.error === undefined ? "succeeded" : "failed"}\`);
    },
  },
};

function withoutEmails(message) {
  return { ...message, content: message.content.map(withoutEmailsInText) };
}

function withoutEmailsInText(block) {
  if (block.text === undefined) return block;
  return { ...block, text: { ...block.text, text: block.text.text.replace(EMAIL, "[email]") } };
}
`;
