import { describe, expect, it } from "vitest";
import type { EventStore, StreamName } from "#src/store/port.js";
import { declined } from "../support/given.js";
import { keptJson } from "../support/ledger.js";
import { shown } from "../support/shown.js";
import * as stories from "../support/stories-messages.js";
import { defines, run, SENDING } from "../support/stories-messages.js";

type Story = (store: EventStore) => Promise<StreamName>;

async function linesOf(story: Story): Promise<readonly string[]> {
  return (await shown(story, { width: 120 })).split("\n");
}

describe("the head of a run of message hooks", () => {
  it.each<[string, Story, string, string]>([
    ["a claim", stories.claimedMessage, "claimed  before_dispatch", "Claimed by faq, whose result is the answer."],
    ["no claim", stories.unclaimedMessage, "unclaimed  before_agent_reply", "Nobody claimed it. Asked: shy."],
    [
      "a rewrite",
      stories.rewrittenMessage,
      "passed  message_sending",
      "To be sent with the content of polite. Asked: scrub, mark, slow, polite. Failed: slow.",
    ],
    [
      "a cancelled rewrite",
      stories.cancelledMessage,
      "cancelled  message_sending",
      "Not to be sent: cancelled by guard: it names a key",
    ],
    [
      "a failure that blocks",
      stories.blockedMessage,
      "blocked  message_sending",
      "Not to be sent: guard failed, and a failure blocks here. TIMEOUT: no answer within 15 ms",
    ],
    [
      "a waterfall",
      stories.shortenedReply,
      "passed  reply_payload_sending",
      "To be sent as it was left by voice. Asked: short, broken, voice. Failed: broken.",
    ],
    [
      "a cancelled waterfall",
      stories.cancelledReply,
      "cancelled  reply_payload_sending",
      "Not to be sent: cancelled by quiet: it is late",
    ],
    ["a notification", stories.sentMessage, "notified  message_sent", "Told: log, count, slow. Failed: count."],
    [
      "a run that was given up",
      stories.abandonedMessage,
      "aborted: cancelled  before_dispatch",
      "Aborted: the caller cancelled. That is no verdict.",
    ],
    [
      "a run that is open",
      stories.openMessage,
      "open  message_received",
      "No verdict is recorded: it is under way, or its process ended (hookledger recover closes it then).",
    ],
    [
      "a rewrite that defined no content",
      (store) => {
        const told = run(1, "message_sending", "rewrite", ["a", "b~skip"], SENDING).start().call(1, 0);
        const metadata = told.keep({ a: 1 });
        return told.happen(2, defines(0, { metadata })).decide(3, "allow").record(store);
      },
      "passed  message_sending",
      "To be sent as it came. Asked: a. Skipped: b.",
    ],
    [
      "a cancellation without a word",
      (store) =>
        run(1, "message_sending", "rewrite", ["a"], SENDING)
          .start()
          .call(1, 0)
          .happen(2, { type: "outcome", index: 0, class: "cancelled" })
          .decide(3, "deny", "a")
          .record(store),
      "cancelled  message_sending",
      "Not to be sent: cancelled by a, who gave no reason.",
    ],
    [
      "a run whose handlers were all skipped",
      (store) => run(1, "message_sending", "rewrite", ["a~skip"], SENDING).start().decide(1, "allow").record(store),
      "passed  message_sending",
      "To be sent as it came. Asked: nobody. Skipped: a.",
    ],
  ])("should say what it came to and why: %s", async (_, story, head, sentence) => {
    const [first = "", second = ""] = await linesOf(story);
    expect(first.slice(0, head.length)).toBe(head);
    expect(second.trim()).toBe(sentence);
  });

  it("should not claim that recovery kept anything from being allowed, for nothing would have been", async () => {
    const [, sentence] = await linesOf((store) =>
      run(1, "message_sent", "notify", ["a"], SENDING)
        .start()
        .call(1, 0)
        .happen(2, { type: "aborted", cause: "recovered", inFlight: [0] })
        .record(store),
    );
    expect(sentence?.trim()).toBe("Aborted by recovery: the process ended before a verdict.");
  });

  it("should say that failures block", async () => {
    const lines = await linesOf(stories.blockedMessage);
    expect(lines).toContain("  on failure  blocks: a handler that fails or hangs suppresses the delivery");
  });
});

describe("the handlers of a run", () => {
  it("should be told in the chart, each with what it came to", async () => {
    const text = await shown(stories.claimedMessage, { width: 120 });
    const chart = text.slice(text.indexOf("Chain"), text.indexOf("decided after")).split("\n").slice(2, 7);
    expect(chart.map((line) => line.replace(/^.*[│█] +(?:\d+ ms {2})?/, ""))).toEqual([
      "declined",
      "failed: UNKNOWN: no such table",
      "skipped: switched off",
      "claimed: result v2",
      "not called: claimed by faq",
    ]);
  });

  it("should be told one by one: what each saw, said and defined, and whose definition counts", async () => {
    const text = await shown(stories.rewrittenMessage, { width: 120 });
    const part = text.slice(text.indexOf("Subscribers"), text.indexOf("\n\nPayloads"));
    expect(part.replace(/[0-9a-f]{12}…/g, "<digest>")).toBe(`Subscribers
  #0 scrub  handler  ·  scrub from host  ·  timeout 1 s
     saw   v1 <digest>, the input  at 1 ms
     said  defined content as v2 (polite defined it anew)  at 2 ms
     ~ content  "my key is hunter2" → "my key is [gone]"
  #1 mark  handler  ·  mark from host  ·  timeout 1 s
     saw   v1 <digest>, same as #0  at 2 ms
     said  defined metadata as v3  at 3 ms
     + metadata  {"score": 3, "tags": ["a"]}
  #2 slow  handler  ·  slow from host  ·  timeout 15 ms
     saw   v1 <digest>, same as #1  at 3 ms
     said  TIMEOUT: no answer within 15 ms  at 19 ms
     lag   the deadline was noticed 1 ms late
  #3 polite  handler  ·  polite from host  ·  timeout 1 s
     saw   v1 <digest>, same as #2  at 19 ms
     said  defined content as v4  at 20 ms
     ~ content  "my key is hunter2" → "My key is hunter2, please."`);
  });

  it("should not be told that a cancellation's content took another's place", async () => {
    const text = await shown(stories.cancelledMessage, { width: 120 });
    expect(text).toContain("said  defined content as v2  at 2 ms");
    expect(text).toContain("said  CANCELLED: it names a key  at 3 ms");
    expect(text).toContain('+ cancelReason  "it names a key"');
    expect(text).toContain("said  not called: cancelled by guard");
  });

  it("should be told that a timeout blocked", async () => {
    expect(await shown(stories.blockedMessage)).toContain("said  not called: the timeout of guard blocked first");
  });

  it("should be told that the same was defined again", async () => {
    const text = await shown((store) => {
      const told = run(1, "message_sending", "rewrite", ["a"], SENDING).start().call(1, 0);
      const content = told.keep("my key is hunter2");
      return told.happen(2, defines(0, { content })).decide(3, "allow", "kernel:default", content).record(store);
    });
    expect(text).toContain("     nothing that was not there before");
  });

  it("should be told which of their payloads are gone", async () => {
    const text = await shown((store) => {
      const told = run(1, "message_sending", "rewrite", ["a"], SENDING).start().call(1, 0);
      const content = told.keep("one");
      return told
        .happen(2, defines(0, { content, metadata: keptJson({ never: "kept" }) }))
        .decide(3, "allow", "kernel:default", content)
        .record(store);
    });
    expect(text).toContain("v3 cannot be compared: the bytes are gone: erased, or never kept");
    expect(text).toContain("WARNING");
  });

  it("should fail in yellow where failing changes nothing, and in red where it blocks", async () => {
    const yellow = await shown(stories.rewrittenMessage, { colours: true });
    expect(yellow).toContain("\u001b[33mTIMEOUT: no answer within 15 ms\u001b[39m");
    const red = await shown(stories.blockedMessage, { colours: true });
    expect(red).toContain("\u001b[31mTIMEOUT: no answer within 15 ms\u001b[39m");
  });

  it("should act on no terminal by what they return", async () => {
    const text = await shown((store) => {
      const told = run(1, "message_sending", "rewrite", ["a"], SENDING).start().call(1, 0);
      const cancelReason = told.keep("\u001b[2Jgone\u202e");
      return told
        .happen(2, { type: "outcome", index: 0, class: "cancelled", set: { cancelReason: cancelReason.ref } })
        .decide(3, "deny", "a")
        .record(store);
    });
    expect(text).toContain("cancelled by a: \\u{1b}[2Jgone\\u{202e}");
    for (const control of ["\u001b", "\u202e"]) expect(text).not.toContain(control);
  });
});

describe("the payloads of a run", () => {
  it("should be listed by what they are", async () => {
    const text = await shown(stories.cancelledMessage, { width: 120 });
    const listed = [...text.matchAll(/^ {2}v(\d) {2}(.*?) {2,}sha256:/gm)].map(([, version, what]) => [version, what]);
    expect(listed).toEqual([
      ["1", "the input"],
      ["2", "content by scrub"],
      ["3", "content by guard"],
      ["4", "cancel reason by guard"],
      ["5", "metadata by guard"],
    ]);
    expect(text).toContain('event.content       "my key is hunter2"');
  });

  it("should be told whoever claims, with the members of the result", async () => {
    const text = await shown(stories.claimedMessage, { width: 120 });
    expect(text).toContain('     + text  "Hello yourself."');
    expect(text).toMatch(/^ {2}v2 {2}result by faq {2}sha256:/m);
  });

  it("should show nobody's answer to nobody", async () => {
    const text = await shown((store) =>
      run(1, "before_dispatch", "claim", ["a"], SENDING)
        .start()
        .call(1, 0)
        .happen(2, declined(0))
        .decide(3, "allow")
        .record(store),
    );
    expect(text).not.toContain("v2");
  });
});
