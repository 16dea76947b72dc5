#!/usr/bin/env node
// A plugin with the SDK that answers as its payloads order: the words are those of the peer in Go (peerplugin/orders.go).
import { servePlugin } from "hookledger/plugin";

const never = new Promise(() => {
  setInterval(() => {}, 60_000);
});

async function follow(order, ctx) {
  const [word, ...others] = order.split(" ");
  const rest = others.join(" ");
  switch (word) {
    case "fail":
      throw new Error(rest);
    case "exit":
      return process.exit(Number(rest));
    case "kill":
      process.kill(process.pid, "SIGKILL");
      return never;
    case "hang":
      await new Promise((_, reject) => {
        ctx.signal.addEventListener("abort", () => {
          process.stderr.write(`aborted: ${order}\n`);
          reject(new Error("it was aborted"));
        });
      });
      return "";
    case "stuck":
      return never;
    case "log":
      ctx.log.warn(`judged with doubts: ${rest}`);
      console.log(`printed: ${rest}`);
      return "";
    case "stdout":
      for (let i = 0; i < Number(rest); i += 1) console.log("noise ".repeat(170_000));
      return "";
    case "say":
      return rest;
    case "context":
      return JSON.stringify({
        point: ctx.point,
        mode: ctx.mode,
        subscriptionId: ctx.subscriptionId,
        remaining: Math.round(ctx.remainingMs()),
        config: ctx.config,
      });
    default:
      return "";
  }
}

await servePlugin({
  name: "node-peer",
  version: "2.0.1",
  hooks: {
    "session-start": {
      observe: (payload, ctx) => follow(payload.profile, ctx),
    },
    "pre-model-call": {
      async transform(payload, ctx) {
        const order = payload.messages[0]?.content[0]?.text?.text ?? "";
        if (order === "unset") return undefined;
        const text = order === "upper" ? "UPPER" : await follow(order, ctx);
        if (text === "") return payload;
        const [first, ...others] = payload.messages;
        return { ...payload, messages: [{ ...first, content: [{ text: { text } }] }, ...others] };
      },
    },
    "pre-tool-call": {
      async veto(payload, ctx) {
        const order = payload.call.toolName;
        if (order === "unset") return undefined;
        if (order.startsWith("deny ")) return { decision: "deny", reason: order.slice(5) };
        const reason = await follow(order, ctx);
        return reason === "" ? "allow" : { decision: "deny", reason };
      },
    },
  },
});
