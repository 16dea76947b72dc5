// Denies a plan that holds an operation which the provider block forbids.
export default {
  "plan-ready": {
    veto(payload, ctx) {
      const forbidden = new Set(ctx.config.forbidden);
      const found = payload.plan?.items.find((item) => forbidden.has(item.operationName));
      return found === undefined
        ? "allow"
        : { decision: "deny", reason: `${found.operationName} is never done by an agent` };
    },
  },
};
