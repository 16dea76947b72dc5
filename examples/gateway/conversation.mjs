// What a customer writes, how the gateway answers its webhook, and what the customer then sees: each is checked while it is told.
import { setTimeout as sleep } from "node:timers/promises";
import { check, facts, scene } from "../demo/story.mjs";

const CUSTOMER = "ada";

/** Plays it. Returns the ledger's ids of the three runs that are to be explained. */
export async function converse(webhook, channel) {
  const chat = new Chat(webhook, channel);

  await scene("1  A message, and the agent's answer", "The webhook is posted, the model answers, the channel gets it.");
  await chat.say("m-1", "Hello!");
  await chat.expect({ end: "answered", statuses: ["sent"], sees: ["You said: Hello!"] });

  await scene("2  The same webhook again", "Channels post again what they are not sure of. Nobody is answered twice.");
  await chat.say("m-1", "Hello!");
  await chat.expect({ end: "duplicate", statuses: [], sees: [] });

  await scene("3  Rewritten", "The model links into a wiki that no customer can open. The rewriter changes the link.");
  await chat.say("m-2", "How do I return my order?");
  await chat.expect({
    end: "answered",
    statuses: ["sent"],
    sees: ["Within 30 days; see https://help.example.com/returns for how."],
  });
  const rewritten = chat.runOf("message_sending");

  await scene(
    "4  Suppressed",
    "The model has found an API key, and gives it away. The secret blocker cancels the reply.",
  );
  await chat.say("m-3", "Can you give me a token?");
  await chat.expect({ end: "answered", statuses: ["suppressed"], sees: [] });
  check("the reason is the hook's", chat.last.replies[0].reason, "cancelled_by_message_sending_hook");
  const suppressed = chat.runOf("message_sending");

  await scene("5  Claimed", "A command. The claimer answers it, and no model is asked.");
  await chat.say("m-4", "/status");
  await chat.expect({ end: "claimed", statuses: ["sent"], sees: ["All systems are up."] });
  check("the claimer took it", [chat.last.hook, chat.last.by], ["before_dispatch", "claimer"]);

  return { suppressed, rewritten, claimed: chat.last.dispatchId };
}

/** The chat service is down; `look` is called while the answer waits. */
export async function outage(webhook, channel, look) {
  const chat = new Chat(webhook, channel);
  await scene(
    "6  The chat service is down for a while",
    "The hooks have been asked, and are not asked again. The answer waits in the ledger's file.",
  );
  await chat.maintenance(true);
  await chat.say("m-5", "Are you open on Sunday?");
  check("the answer waits", chat.last.replies[0].custody?.state, "pending");
  await look();
  await chat.maintenance(false);
  await chat.sees("You said: Are you open on Sunday?");
}

class Chat {
  last = {};
  #webhook;
  #channel;
  #seen = 0;

  constructor(webhook, channel) {
    this.#webhook = webhook;
    this.#channel = channel;
  }

  async say(id, text) {
    const response = await fetch(this.#webhook, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ id, from: CUSTOMER, conversation: "c-1", text }),
    });
    this.last = await response.json();
    await facts([
      [`${CUSTOMER} writes`, text],
      ["the webhook is answered", `${response.status} ${this.last.end}`],
    ]);
    check("the webhook is answered well", response.status, 200);
  }

  /** Of the last message: how its turn ended, what became of the replies, and what the customer sees of them. */
  async expect({ end, statuses, sees }) {
    const all = await (await fetch(this.#channel)).json();
    const texts = all.slice(this.#seen).map(({ text }) => text);
    this.#seen = all.length;
    await facts([[`${CUSTOMER} sees`, texts.join(" | ") || "nothing"]]);
    check("the turn ends as it should", this.last.end, end);
    check(
      "the replies end as they should",
      this.last.replies.map(({ status }) => status),
      statuses,
    );
    check("the customer sees what is meant for customers", texts, sees);
  }

  async maintenance(on) {
    const headers = { "content-type": "application/json" };
    await fetch(new URL("/maintenance", this.#channel), { method: "PUT", headers, body: JSON.stringify(on) });
  }

  /** Resolves once the customer does; the run's watchdog bounds how long that may take. */
  async sees(text) {
    for (;;) {
      const all = await (await fetch(this.#channel)).json();
      if (all.at(-1)?.text === text) break;
      await sleep(20);
    }
    await facts([
      ["up again", ""],
      [`${CUSTOMER} sees`, text],
    ]);
  }

  runOf(hook) {
    return this.last.replies[0].hookRuns.find((run) => run.hook === hook).dispatchId;
  }
}
