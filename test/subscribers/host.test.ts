import { describe, expect, it } from "vitest";
import type { HookMode } from "#src/core/events.js";
import type { Answer } from "#src/payload/answer.js";
import type { PreModelCallPayload } from "#src/payload/messages.js";
import type { HookHandlers } from "#src/subscribers/handlers.js";
import { bindHost } from "#src/subscribers/host.js";
import type { LogSink } from "#src/subscribers/log.js";
import { call, INPUTS, POINT_OF, provider } from "../support/subscriber-calls.js";

type Given = Readonly<Record<string, unknown>>;

/** A host subscriber whose one handler is whatever a test wants, types aside. */
function bound(mode: HookMode, handler: unknown, config: Given = {}, log: LogSink = () => {}) {
  const point = POINT_OF[mode];
  const host = { sub: { [point]: { [mode]: handler } } } as Record<string, HookHandlers>;
  return bindHost(provider({ kind: "host" }), [{ point, mode }], host, { config: config as never, log });
}

function summary(answer: Answer): string {
  return answer.class === "failed" || answer.class === "invalid"
    ? `${answer.class} ${answer.error.category}`
    : answer.class;
}

const FAILED: Readonly<Record<HookMode, string>> = {
  observe: "failed UNKNOWN",
  transform: "failed TRANSFORM_FAILED",
  veto: "failed VETO_FAILED",
};
/** By a name, so that the linter lets tests make thenables. */
const THEN = "then";
type Settle = (value: unknown) => void;
const MODES = ["observe", "transform", "veto"] as const;

describe("binding host functions", () => {
  it("should refuse a provider to which nothing is bound, also by an inherited name", () => {
    for (const name of ["sub", "constructor", "__proto__"]) {
      expect(() => bindHost(provider({ kind: "host" }, { name }), [], {}, { config: {}, log: () => {} })).toThrowError(
        expect.objectContaining({ code: "HL_SUBSCRIBER_LOAD", place: expect.anything() }),
      );
    }
  });

  it("should name the handler that a hook needs and nobody gave", () => {
    const host = { sub: { "plan-ready": { veto: () => "allow" as const } } };
    const needed = [
      { point: "plan-ready", mode: "veto" },
      { point: "plan-ready", mode: "observe" },
    ] as const;
    expect(() => bindHost(provider({ kind: "host" }), needed, host, { config: {}, log: () => {} })).toThrowError(
      /lacks the handler plan-ready\.observe$/,
    );
  });

  it("should go on with the handlers as they were when they were bound", async () => {
    const handlers = { veto: (): "allow" | "deny" => "deny" };
    const host = { sub: { "pre-tool-call": handlers } };
    const transport = bindHost(provider({ kind: "host" }), [{ point: "pre-tool-call", mode: "veto" }], host, {
      config: {},
      log: () => {},
    });
    handlers.veto = () => "allow";
    expect(await transport.invoke(call("veto"))).toEqual({ class: "deny" });
  });
});

describe("a handler's context", () => {
  it("should tell what the call is about", async () => {
    let seen: unknown;
    const config = Object.freeze({ limit: 3 });
    const transport = bound(
      "veto",
      (payload: unknown, ctx: Given & { remainingMs: () => number }) => {
        const { point, mode, subscriptionId, session, turn, config: given, remainingMs } = ctx;
        seen = { payload, point, mode, subscriptionId, session, turn, given, left: remainingMs() };
        return "allow";
      },
      config,
    );
    const invocation = call("veto", { subscriptionId: "a", session: "s", turn: "t", timeoutMs: 80 });
    invocation.clock.advance(30);
    await transport.invoke(invocation);
    expect(seen).toEqual({
      payload: invocation.payload.view,
      point: "pre-tool-call",
      mode: "veto",
      subscriptionId: "a",
      session: "s",
      turn: "t",
      given: config,
      left: 50,
    });
  });

  it("should make a signal only for a handler that reads it", async () => {
    const without = call("veto");
    await bound("veto", () => "allow").invoke(without);
    expect(without.signalMade()).toBe(false);

    const reading = call("veto");
    const waiting = bound("veto", (_: unknown, { signal }: { signal: AbortSignal }) => {
      return new Promise((resolve) => signal.addEventListener("abort", () => resolve("deny")));
    }).invoke(reading);
    reading.abort();
    expect(await waiting).toEqual({ class: "deny" });
  });

  it("should log through the sink, on one line, whatever is logged and whatever the sink does", async () => {
    const lines: unknown[] = [];
    const hostile = {
      toJSON() {
        throw new Error("not for logs");
      },
    };
    const handler = (_: unknown, { log }: { log: Record<string, (message: unknown) => void> }) => {
      log["info"]?.("one\ntwo");
      log["warn"]?.({ a: 1 });
      log["error"]?.(new Error("boom"));
      log["debug"]?.(hostile);
      log["debug"]?.(undefined);
      return "allow";
    };
    const sink: LogSink = (line) => {
      lines.push(line);
      throw new Error("the sink is full");
    };
    expect(await bound("veto", handler, {}, sink).invoke(call("veto"))).toEqual({ class: "allow" });
    expect(lines).toEqual([
      { level: "info", provider: "sub", message: "one\ntwo" },
      { level: "warn", provider: "sub", message: '{"a":1}' },
      { level: "error", provider: "sub", message: "boom" },
      { level: "debug", provider: "sub", message: "undefined" },
    ]);
  });
});

describe("a handler that fails", () => {
  const thrown: readonly (readonly [string, () => unknown, RegExp])[] = [
    ["an error", () => new Error("boom"), /^boom$/],
    ["an error of a kind", () => new RangeError("too far"), /^RangeError: too far$/],
    ["null", () => null, /^nothing was thrown/],
    ["undefined", () => undefined, /^nothing was thrown/],
    ["a string", () => "oh", /^a string was thrown: oh$/],
    ["a symbol", () => Symbol("s"), /^a symbol was thrown: Symbol\(s\)$/],
    ["a function", () => () => {}, /^a function was thrown$/],
    ["a bare object", () => Object.create(null), /without a message/],
    ["an object with a message that is none", () => ({ message: 7 }), /without a message/],
    ["a huge message", () => new Error("x".repeat(5_000_000)), /^x{65536}$/],
    ["controls", () => new Error("a\u001b[2Jb"), /^a\p{Cc}\[2Jb$/u],
    [
      "an error whose message cannot be read",
      () =>
        Object.defineProperty(new Error("x"), "message", {
          get() {
            throw new Error("hidden");
          },
        }),
      /cannot be read$/,
    ],
    [
      "a proxy that throws at everything",
      () =>
        new Proxy(
          {},
          {
            has() {
              throw new Error("no");
            },
            get() {
              throw new Error("no");
            },
          },
        ),
      /cannot be read$/,
    ],
  ];

  for (const mode of MODES) {
    it.each(thrown)(`should fail as ${mode} does when it throws or rejects with %s`, async (_, value, message) => {
      const sync = () => {
        throw value();
      };
      const late = () => Promise.reject(value());
      for (const handler of [sync, late]) {
        const answer = await bound(mode, handler).invoke(call(mode));
        expect(summary(answer)).toBe(FAILED[mode]);
        expect(answer.class === "failed" && answer.error.message).toMatch(message);
      }
    });
  }

  it("should never show a stack", async () => {
    const answer = await bound("veto", () => {
      throw new Error("boom");
    }).invoke(call("veto"));
    expect(JSON.stringify(answer)).not.toMatch(/\bat |\.ts/);
  });

  it.each([
    [
      "writes to the payload",
      (payload: { call: { id: string } }) => {
        payload.call.id = "other";
        return "allow";
      },
    ],
    [
      "adds to the payload",
      (payload: Record<string, unknown>) => {
        payload["extra"] = 1;
        return "allow";
      },
    ],
  ])("should fail when it %s, which is frozen", async (_, handler) => {
    const invocation = call("veto");
    expect(summary(await bound("veto", handler).invoke(invocation))).toBe("failed VETO_FAILED");
    expect(invocation.payload.view).toMatchObject(INPUTS["pre-tool-call"].preToolCall);
  });
});

describe("what a handler returns", () => {
  const nasty = (value: unknown) => ({ decision: "deny", reason: value });

  it.each([
    ["undefined", () => undefined, "invalid INVALID_RESPONSE"],
    ["null", () => null, "invalid INVALID_RESPONSE"],
    ["true", () => true, "invalid INVALID_RESPONSE"],
    ["a string that is none", () => "ALLOW", "invalid INVALID_RESPONSE"],
    ["a String object", () => new String("allow"), "invalid INVALID_RESPONSE"],
    ["a stranger's key", () => ({ decision: "allow", sure: true }), "invalid INVALID_RESPONSE"],
    ["a reason that is none", () => nasty({}), "invalid INVALID_RESPONSE"],
    ["an array", () => ["allow"], "invalid INVALID_RESPONSE"],
    ["a promise of nonsense", async () => "perhaps", "invalid INVALID_RESPONSE"],
    [
      "a getter that throws",
      () => ({
        get decision() {
          throw new Error("later");
        },
      }),
      "failed VETO_FAILED",
    ],
    [
      "a then getter that throws",
      () =>
        Object.defineProperty({}, THEN, {
          get() {
            throw new Error("later");
          },
        }),
      "failed VETO_FAILED",
    ],
    [
      "a revoked proxy",
      () => {
        const { proxy, revoke } = Proxy.revocable({}, {});
        revoke();
        return proxy;
      },
      "failed VETO_FAILED",
    ],
    ["a thenable that resolves", () => thenable((resolve) => resolve("deny")), "deny"],
    ["a thenable that rejects", () => thenable((_, reject) => reject(new Error("no"))), "failed VETO_FAILED"],
    [
      "a thenable that throws",
      () =>
        thenable(() => {
          throw new Error("no");
        }),
      "failed VETO_FAILED",
    ],
    [
      "a thenable that denies, allows and rejects",
      () =>
        thenable((resolve, reject) => {
          resolve("deny");
          resolve("allow");
          reject(new Error("no"));
        }),
      "deny",
    ],
    [
      "a thenable that denies and throws",
      () =>
        thenable((resolve) => {
          resolve("deny");
          throw new Error("no");
        }),
      "deny",
    ],
    ["a thenable of a thenable", () => thenable((resolve) => resolve(thenable((inner) => inner("deny")))), "deny"],
    [
      "a promise with a then of its own",
      () => Object.assign(Promise.resolve("allow"), { [THEN]: (resolve: Settle) => resolve("deny") }),
      "deny",
    ],
    [
      "a promise whose then does nothing good",
      () => Object.assign(Promise.resolve("allow"), { [THEN]: 1 }),
      "invalid INVALID_RESPONSE",
    ],
  ])("should be judged in veto: %s", async (_, handler, expected) => {
    expect(summary(await bound("veto", handler).invoke(call("veto")))).toBe(expected);
  });

  it("should be ignored in observe, and yet be waited for", async () => {
    let done = false;
    const handler = async () => {
      await new Promise((resolve) => setImmediate(resolve));
      done = true;
      return { decision: "deny" };
    };
    expect(await bound("observe", handler).invoke(call("observe"))).toEqual({ class: "ack" });
    expect(done).toBe(true);
  });

  it("should become the payload in transform, as far as it may be changed", async () => {
    const handler = (payload: PreModelCallPayload) => ({ ...payload, messages: [] });
    const answer = await bound("transform", handler).invoke(call("transform"));
    expect(answer.class === "transformed" && answer.payload.view).toMatchObject({
      messages: [],
      model: { provider: "acme", id: "large" },
    });
  });

  it.each([
    ["another model", (p: object) => ({ ...p, model: { provider: "acme", id: "small" } })],
    ["a property that there is not", (p: object) => ({ ...p, extra: 1 })],
    ["a wrong type", (p: object) => ({ ...p, messages: "none" })],
    ["nothing", () => undefined],
    ["an instance of a class without the fields", () => new (class Payload {})()],
  ])("should be invalid in transform: %s", async (_, handler) => {
    expect(summary(await bound("transform", handler).invoke(call("transform")))).toBe("invalid INVALID_RESPONSE");
  });

  it("should settle in the same turn when nothing is promised", async () => {
    let settled = false;
    const answer = bound("veto", () => "allow").invoke(call("veto"));
    answer.then(() => {
      settled = true;
    });
    await Promise.resolve();
    expect(settled).toBe(true);
  });
});

/** An object with a `then`, which is all that makes a promise. */
function thenable(then: (resolve: Settle, reject: Settle) => void): object {
  return Object.fromEntries([[THEN, then]]);
}
