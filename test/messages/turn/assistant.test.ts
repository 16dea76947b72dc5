import { describe, expect, it } from "vitest";
import { assistantPreparer, persistAssistantTurn } from "#src/messages/turn/assistant.js";
import { TurnLife } from "#src/messages/turn/life.js";
import type { TranscriptMessage } from "#src/messages/turn/transcript.js";
import { ANSWER, MESSAGE, RECEIPT, TARGET } from "./transcripts.js";

const appended = () => {
  const messages: unknown[] = [];
  const append = async (_: unknown, message: TranscriptMessage) => {
    messages.push(message);
    return { ...RECEIPT, messageId: message.id };
  };
  return { messages, append };
};

describe("prepareAssistantTranscriptMessage", () => {
  it("should record display ownership before the stored append, from the original text", async () => {
    const order: unknown[] = [];
    const prepare = assistantPreparer({
      life: new TurnLife(),
      runId: "r-1",
      onOwned: (id, { text }) => void order.push(`owned ${id}: ${text}`),
    });
    const append = async () => {
      order.push("appended");
      return RECEIPT;
    };
    const hooked = { ...ANSWER, content: "what transcript-only hooks made of it" };
    const message = prepare(hooked, "hi");
    await persistAssistantTurn({ transcripts: { append }, target: TARGET, message, idempotencyKey: "k" });
    expect(order).toEqual(["owned a-1: hi", "appended"]);
    expect(message).toEqual({ ...hooked, display: { owner: "reply-dispatch", runId: "r-1", text: "hi" } });
  });

  it("should preserve raw content and ids", () => {
    const prepare = assistantPreparer({ life: new TurnLife(), runId: "r-1" });
    const { display, ...rest } = prepare(ANSWER, "hi");
    expect(rest).toEqual(ANSWER);
    expect(rest.content).toBe(ANSWER.content);
    expect(display).toEqual({ owner: "reply-dispatch", runId: "r-1", text: "hi" });
  });

  it("should grant nothing else: what it adds is text alone", () => {
    const prepare = assistantPreparer({ life: new TurnLife(), runId: "r-1" });
    expect(JSON.parse(JSON.stringify(prepare(ANSWER, "hi").display))).toEqual(prepare(ANSWER, "hi").display);
  });

  it.each(["aborted", "replaced", "completed"] as const)(
    "should return the message unchanged once its turn is %s",
    (end) => {
      const aborting = new AbortController();
      const life = new TurnLife(aborting.signal);
      const prepare = assistantPreparer({
        life,
        runId: "r-1",
        onOwned: () => expect.fail("it owns nothing any more"),
      });
      if (end === "aborted") aborting.abort();
      else life.end(end);
      expect(life.over).toBe(end);
      expect(prepare(ANSWER, "hi")).toBe(ANSWER);
    },
  );

  it("should keep the first text for a message that is prepared again, and leave others' messages alone", () => {
    const prepare = assistantPreparer({ life: new TurnLife(), runId: "r-1" });
    const first = prepare(ANSWER, "hi");
    expect(prepare(first, "later")).toBe(first);
    expect(prepare(MESSAGE, "hi")).toBe(MESSAGE);
  });
});

describe("an assistant's receipt", () => {
  it("should prevent a duplicate append", async () => {
    const { messages, append } = appended();
    const turn = { transcripts: { append }, target: TARGET, message: ANSWER, idempotencyKey: "k" };
    expect(await persistAssistantTurn({ ...turn, receipt: RECEIPT })).toBe(RECEIPT);
    expect(messages).toEqual([]);
    expect(await persistAssistantTurn(turn)).toMatchObject({ messageId: "a-1" });
    expect(messages).toEqual([ANSWER]);
  });

  it.each([true, "written", {}, { messageId: "m-1" }, null])(
    "should be appended where the receipt is %j",
    async (given) => {
      const turn = { target: TARGET, message: ANSWER, idempotencyKey: "k" };
      let appended = 0;
      const append = async () => {
        appended++;
        return RECEIPT;
      };
      const claimed = { ...turn, transcripts: { append } };
      Reflect.set(claimed, "receipt", given);
      await persistAssistantTurn(claimed);
      expect(appended).toBe(1);
    },
  );
});

describe("the life of a turn", () => {
  it("should have one end: the first", () => {
    const aborting = new AbortController();
    const life = new TurnLife(aborting.signal);
    expect(life.over).toBeNull();
    life.end("completed");
    aborting.abort();
    life.end("replaced");
    expect(life.over).toBe("completed");
  });
});
