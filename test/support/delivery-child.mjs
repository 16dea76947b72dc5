// A process that delivers durably until it is told to stop, or killed: node delivery-child.mjs <url> <channel's port> <from> <count>
// Says what it did on stdout, a line at a time, written at once: what was said, had happened.
import { writeSync } from "node:fs";
import { Agent, request as httpRequest } from "node:http";
import { setTimeout as after } from "node:timers/promises";
import { createMessageHooks } from "#src/messages/create.js";
import { openDurableDeliveries } from "#src/messages/durable/deliveries.js";
import { NotSentError } from "#src/messages/durable/not-sent.js";
import { openStore } from "#src/store/open.js";
import { queueOf } from "#src/store/queue-of.js";

const [url, port, from, count] = process.argv.slice(2);
const AT_ONCE = 16;
const agent = new Agent({ keepAlive: true });

let stopping = false;
process.stdin.on("end", () => {
  stopping = true;
});
const told = new Promise((resolve) => {
  process.stdin.once("end", resolve).once("data", resolve);
});

const numberOf = (text) => /\d+/.exec(text)[0];
const PLUGINS = [
  {
    id: "claimer",
    register: (api) => void api.on("before_dispatch", () => null),
  },
  {
    id: "shape",
    register: (api) =>
      void api.on("reply_payload_sending", async ({ payload }) => {
        say(`shaped ${numberOf(payload.text)}`);
        await after(1);
        return { payload: { ...payload, text: `${payload.text}?` } };
      }),
  },
  {
    id: "rewriter",
    register: (api) =>
      void api.on("message_sending", ({ content }) => {
        say(`rewritten ${numberOf(content)}`);
        return { content: `${content}!` };
      }),
  },
  {
    id: "observer",
    register: (api) =>
      void api.on("message_sent", ({ content, success }) => say(`told ${numberOf(content)} ${success}`)),
  },
];

/** One channel can tell what it has, the other cannot. */
const CHANNELS = new Map([
  ["telling", { channelId: "telling", send, wasSent: (key) => ask("GET", `/sent?key=${encodeURIComponent(key)}`) }],
  ["mute", { channelId: "mute", send }],
]);

try {
  await told;
  const store = await openStore(url, { mode: "write" });
  const queue = queueOf(store);
  const hooks = await createMessageHooks({ store, plugins: PLUGINS });
  const deliveries = await openDurableDeliveries({
    queue,
    runs: hooks.runs,
    channelOf: ({ channelId }) => CHANNELS.get(channelId),
    retry: { baseMs: 5 },
    pollMs: 50,
  });
  say("open");
  await Promise.all(Array.from({ length: AT_ONCE }, (_, lane) => deliver(deliveries, hooks.runs, lane)));
  while ((await queue.deliveries({ states: ["pending", "attempting"], limit: 1 })).length > 0) await after(5);
  await deliveries.close();
  await hooks.close();
  await store.close();
  agent.destroy();
  say("done");
} catch (error) {
  say(`failed ${error.stack}`);
  process.exitCode = 1;
}
process.stdin.unref?.();

async function deliver(deliveries, runs, lane) {
  for (let n = Number(from) + lane; n < Number(from) + Number(count) && !stopping; n += AT_ONCE) {
    const adapter = CHANNELS.get(lane % 2 === 0 ? "telling" : "mute");
    const { outcomes } = await deliveries.deliver([{ text: `reply ${n}` }], {
      runs,
      route: {
        adapter,
        to: `lane ${lane}`,
        context: { channelId: adapter.channelId, sessionKey: `s-${lane}`, runId: `r-${n}` },
      },
      idempotencyKey: `k-${n}`,
    });
    const [{ status, custody }] = outcomes;
    say(`outcome ${JSON.stringify({ n, status, ...custody })}`);
  }
}

async function send({ idempotencyKey, part }) {
  const key = await ask("POST", "/send", { key: idempotencyKey, text: part.text });
  return { messageId: `m-${key}` };
}

function ask(method, path, body) {
  return new Promise((resolve, reject) => {
    const asked = httpRequest({ host: "127.0.0.1", port, method, path, agent }, (response) => {
      let text = "";
      response
        .setEncoding("utf8")
        .on("data", (part) => {
          text += part;
        })
        .on("error", reject)
        .on("end", () => {
          if (response.statusCode === 503) reject(new NotSentError("not now"));
          else resolve(JSON.parse(text));
        });
    });
    asked.on("error", reject).end(body === undefined ? undefined : JSON.stringify(body));
  });
}

function say(line) {
  writeSync(1, `${line}\n`);
}
