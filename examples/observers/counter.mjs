// Counts tool calls by name.
const counts = new Map();

export default {
  "post-tool-call": {
    observe({ call }, ctx) {
      const count = (counts.get(call.toolName) ?? 0) + 1;
      counts.set(call.toolName, count);
      ctx.log.info(`${call.toolName}: ${count}`);
    },
  },
};
