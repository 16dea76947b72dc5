import { describe, expect, it } from "vitest";
import type { PointMessages } from "#src/payload/messages.js";
import { payloadToJson } from "#src/payload/payload.js";
import type { HookContext } from "#src/subscribers/handlers.js";
import { checked, failureOf, failuresIn, subjectOf } from "./checked.js";

type Messages = PointMessages["pre-model-call"];
type Plan = PointMessages["plan-ready"];

const EVERY_POINT = [
  "session-start",
  "pre-model-call",
  "post-model-response",
  "pre-tool-call",
  "plan-ready",
  "post-tool-call",
  "post-apply",
  "session-end",
];

describe("conformance of handlers", () => {
  it("should pass who observes, passes on and allows, at every point", async () => {
    const handlers = { observe() {}, transform: (payload: object) => ({ ...payload }), veto: () => "allow" };
    const results = await checked(subjectOf(Object.fromEntries(EVERY_POINT.map((point) => [point, handlers]))), {
      runs: 10,
    });
    expect(failuresIn(results)).toEqual([]);
    expect(new Set(results.map(({ point, mode }) => `${point} ${mode}`)).size).toBe(18);
    expect(new Set(results.map(({ check }) => check.name)).size).toBe(8);
  });

  it("should pass a transform that rewrites texts and keeps the rest", async () => {
    const transform = (payload: Messages) => ({
      ...payload,
      messages: payload.messages.map((message) => ({
        ...message,
        content: message.content.map((block) =>
          block.text === undefined ? block : { ...block, text: { ...block.text, text: block.text.text.toUpperCase() } },
        ),
      })),
    });
    expect(failuresIn(await checked(subjectOf({ "pre-model-call": { transform } }), { runs: 100 }))).toEqual([]);
  });

  const later = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
  const never = new Promise(() => {});
  let asked = 0;
  let last: object = {};

  it.each<[check: string, hooks: object]>([
    ["answer", { "plan-ready": { veto: ({ plan }: Plan) => ((plan?.turnId.length ?? 0) > 3 ? "maybe" : "allow") } }],
    ["sparse", { "plan-ready": { veto: ({ plan }: Plan) => (plan!.items.length > 20 ? "deny" : "allow") } }],
    ["identity", { "pre-model-call": { transform: (p: Messages) => ({ ...p, model: { ...p.model, id: "other" } }) } }],
    ["unknown-fields", { "pre-model-call": { transform: ({ messages, model }: Messages) => ({ messages, model }) } }],
    [
      "unknown-fields",
      {
        "pre-model-call": {
          transform: (p: Messages) => ({
            ...p,
            messages: p.messages.map(({ role, content, id, producedByModelId, producedByProvider }) => {
              return { role, content, id, producedByModelId, producedByProvider };
            }),
          }),
        },
      },
    ],
    ["determinism", { "pre-tool-call": { veto: () => (asked++ % 2 === 0 ? "allow" : "deny") } }],
    [
      "deadline",
      { "session-end": { observe: (_: object, ctx: HookContext) => (ctx.remainingMs() < 100 ? never : undefined) } },
    ],
    [
      "cancellation",
      {
        "session-end": {
          async observe(_: object, { signal, remainingMs }: HookContext) {
            await later(15);
            if (signal.aborted && remainingMs() > 100) await never;
          },
        },
      },
    ],
    [
      "concurrency",
      {
        "post-apply": {
          async transform(payload: object) {
            last = payload;
            await later(1);
            return last;
          },
        },
      },
    ],
  ])("should fail by %s alone", async (name, hooks) => {
    const results = await checked(subjectOf(hooks), name === "cancellation" ? { runs: 3, graceMs: 80 } : { runs: 40 });
    expect(failuresIn(results)).toEqual([name]);
    expect(failureOf(results, name).specimen).toMatchObject({ kind: "payload" });
  });

  it("should shrink what fails to what it takes to fail", async () => {
    const veto = ({ plan }: Plan) => {
      if ((plan?.items.length ?? 0) > 1) throw new RangeError("too many items");
      return "allow";
    };
    const failure = failureOf(await checked(subjectOf({ "plan-ready": { veto } }), { runs: 100 }), "answer");
    expect(failure.message).toBe("VETO_FAILED: RangeError: too many items");
    const json = failure.specimen?.kind === "payload" ? payloadToJson(failure.specimen.payload) : null;
    expect(json).toMatchObject({ planReady: { plan: { items: [{}, {}] } } });
    expect(JSON.stringify(json).length).toBeLessThan(500);
  });

  it("should say of what fails only now and then that it does", async () => {
    let calls = 0;
    const veto = () => {
      calls++;
      if (calls % 7 === 0) throw new Error("a bad day");
      return "allow";
    };
    const results = await checked(subjectOf({ "plan-ready": { veto } }), { checks: ["answer", "determinism"] });
    expect(failuresIn(results)).toEqual(["answer", "determinism"]);
    expect(failureOf(results, "answer").message).toBe("VETO_FAILED: a bad day; not every time");
  });

  it("should check who never answers for that alone, and come to an end", async () => {
    const results = await checked(subjectOf({ "plan-ready": { veto: () => never, observe() {} } }), {
      timeoutMs: 50,
      budgetMs: 2_000,
    });
    expect(results.filter(({ mode }) => mode === "veto").map(({ check }) => check.name)).toEqual(["answer"]);
    expect(failureOf(results, "answer").message).toContain("no answer within 50 ms, nor 200 ms after that");
    expect(failuresIn(results.filter(({ mode }) => mode === "observe"))).toEqual([]);
  });

  it("should take for crashed who cannot be reached any more", async () => {
    const subject = subjectOf({ "plan-ready": { veto: () => "allow" } });
    const reach = () => Promise.reject(new Error("it does not start again"));
    const results = await checked({ ...subject, reach }, { runs: 2 });
    expect(failureOf(results, "answer").message).toBe("PROCESS_CRASHED: it does not start again");
  });

  it("should fail what there was no time for", async () => {
    const results = await checked(subjectOf({ "plan-ready": { veto: () => "allow" } }), { budgetMs: 0 });
    const [first, ...others] = results.map(({ finding }) => (finding.ok ? finding.runs : finding.message));
    expect(first).toBe(1);
    expect(new Set(others)).toEqual(new Set(["not run: the time was up"]));
  });
});
