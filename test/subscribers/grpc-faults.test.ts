import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { HookMode } from "#src/core/events.js";
import type { Answer } from "#src/payload/answer.js";
import { connectGrpc, type GrpcSubscriber } from "#src/subscribers/grpc.js";
import { call, provider } from "../support/subscriber-calls.js";
import { Peer, type PeerOptions } from "../support/subscriber-peer.js";

const MAX = 1024 * 1024;

async function subscriberOf(peer: Peer, maxMessageBytes = MAX): Promise<GrpcSubscriber> {
  const source = { kind: "grpc", transport: "tcp", target: peer.target, insecure: false } as const;
  return connectGrpc(provider(source), { maxMessageBytes });
}

function summary(answer: Answer): string {
  return answer.class === "failed" || answer.class === "invalid"
    ? `${answer.class} ${answer.error.category}`
    : answer.class;
}

const BY_MODE: Readonly<Record<HookMode, string>> = {
  observe: "failed UNKNOWN",
  transform: "failed TRANSFORM_FAILED",
  veto: "failed VETO_FAILED",
};
const CRASHED = "failed PROCESS_CRASHED";
const INVALID = "invalid INVALID_RESPONSE";
const MODES = ["observe", "transform", "veto"] as const;

/** What each fault is in each mode; `null`: as the mode says. */
const GRPC_FAULTS: readonly (readonly [string, string | null])[] = [
  ["wrong-mode", INVALID],
  ["empty", INVALID],
  ["two-outcomes", INVALID],
  ["mixed-outcomes", INVALID],
  ["garbage", INVALID],
  ["100-mib", INVALID],
  ["resource-exhausted", null],
  ["early-deadline", null],
  ["internal", null],
  ["unimplemented", null],
  ["cancelled", null],
  ["unavailable", CRASHED],
];

const WIRE_FAULTS: readonly (readonly [string, string | null])[] = [
  ["two-messages", INVALID],
  ["no-message", INVALID],
  ["half-frame", INVALID],
  ["frame-of-noise", INVALID],
  ["huge-length", INVALID],
  ["bad-gzip", INVALID],
  ["compressed-identity", INVALID],
  ["odd-encoding", INVALID],
  ["status-then-allow", null],
  ["odd-status", null],
  ["own-oversize", null],
  ["grpc-web", CRASHED],
  ["html", CRASHED],
  ["json", CRASHED],
  ["no-content-type", CRASHED],
  ["http-500", CRASHED],
  ["http-500-bare", CRASHED],
  ["http-404-bare", CRASHED],
  ["http-503-bare", CRASHED],
  ["no-status", CRASHED],
  ["rst-internal", CRASHED],
  ["rst-protocol", CRASHED],
  ["rst-cancel", CRASHED],
  ["rst-refused", CRASHED],
  ["rst-calm", CRASHED],
  ["rst-mid-answer", CRASHED],
  ["close-at-once", CRASHED],
  ["close-mid-answer", CRASHED],
];

describe.each<{ kind: PeerOptions["kind"] & string; faults: readonly (readonly [string, string | null])[] }>([
  { kind: "grpc", faults: GRPC_FAULTS },
  { kind: "wire", faults: WIRE_FAULTS },
])("a gRPC subscriber ($kind) that misbehaves", ({ kind, faults }) => {
  let peer: Peer;
  let subscriber: GrpcSubscriber;
  beforeAll(async () => {
    peer = await Peer.start({ kind });
    subscriber = await subscriberOf(peer);
  });
  afterAll(async () => {
    await subscriber.close();
    await peer.stop();
  });

  for (const mode of MODES) {
    it.each(faults.map(([behaviour, expected]) => [behaviour, expected ?? BY_MODE[mode]]))(
      `should be judged in ${mode}: %s is %s`,
      async (behaviour, expected) => {
        expect(summary(await subscriber.invoke(call(mode, { turn: behaviour })))).toBe(expected);
      },
    );
  }
});

describe("a gRPC subscriber's answer", () => {
  let peer: Peer;
  let subscriber: GrpcSubscriber;
  beforeAll(async () => {
    peer = await Peer.start();
    subscriber = await subscriberOf(peer);
  });
  afterAll(async () => {
    await subscriber.close();
    await peer.stop();
  });

  it.each(["unspecified", "unknown-enum"])("should be invalid in veto when it is %s", async (behaviour) => {
    expect(summary(await subscriber.invoke(call("veto", { turn: behaviour })))).toBe(INVALID);
  });

  it.each(["empty-transform", "wrong-variant"])("should be invalid in transform when it is %s", async (behaviour) => {
    expect(summary(await subscriber.invoke(call("transform", { turn: behaviour })))).toBe(INVALID);
  });

  it("should name both sizes when the peer refuses a request for its size", async () => {
    const answer = await subscriber.invoke(call("veto", { turn: "resource-exhausted" }));
    expect(answer.class === "failed" && answer.error.message).toMatch(
      /request of \d+ bytes \(bound here: 1048576 bytes\).*5000000 vs\. 4194304/,
    );
  });

  it("should say how large an answer over the bound was", async () => {
    const answer = await subscriber.invoke(call("observe", { turn: "100-mib" }));
    expect(answer.class === "invalid" && answer.error.message).toContain("104857600 bytes");
  });

  it("should be taken when it is good, in every mode", async () => {
    const answers = await Promise.all(MODES.map((mode) => subscriber.invoke(call(mode))));
    expect(answers.map(summary)).toEqual(["ack", "transformed", "allow"]);
  });

  it("should deny with the reason of the trailing metadata", async () => {
    expect(await subscriber.invoke(call("veto", { turn: "reason" }))).toEqual({ class: "deny", reason: "too many ✋" });
  });

  it("should deny without a reason that cannot be read, with a warning", async () => {
    expect(await subscriber.invoke(call("veto", { turn: "bad-reason" }))).toEqual({
      class: "deny",
      warnings: ["hookledger-reason ignored: not percent-encoded UTF-8"],
    });
  });

  it("should pass on what the peer says of an answer that is none", async () => {
    const message = "empty answer: no outcome is set; the peer says: no verdict";
    expect(await subscriber.invoke(call("veto", { turn: "empty-reason" }))).toEqual({
      class: "invalid",
      error: { category: "INVALID_RESPONSE", message },
    });
  });

  it("should deny with a reason of at most 1 024 bytes", async () => {
    expect(await subscriber.invoke(call("veto", { turn: "long-reason" }))).toEqual({
      class: "deny",
      reason: "x".repeat(1024),
    });
  });

  it("should not be waited for past the abort, and the peer should hear of it", async () => {
    const waiting = call("veto", { turn: "hang" });
    const seen = peer.calls.length;
    const answer = subscriber.invoke(waiting);
    await peer.until(() => peer.calls.length > seen);
    waiting.abort();
    expect(summary(await answer)).toBe("failed VETO_FAILED");
    await peer.until(() => peer.cancelled > 0);
  });

  it("should be a timeout when the call's own deadline fires", async () => {
    const hanging = call("veto", { turn: "hang", timeoutMs: 20 });
    hanging.clock.advance(20);
    expect(summary(await subscriber.invoke(hanging))).toBe("failed TIMEOUT");
  });

  it("should be a timeout when the peer gives up at or after the deadline", async () => {
    const late = call("veto", { turn: "early-deadline" });
    late.clock.advance(5_000);
    expect(summary(await subscriber.invoke(late))).toBe("failed TIMEOUT");
  });

  it("should not begin when the signal has aborted already", async () => {
    const aborted = call("veto", { dispatchId: "ABORTED" });
    aborted.abort();
    expect(summary(await subscriber.invoke(aborted))).toBe("failed VETO_FAILED");
    await subscriber.invoke(call("veto", { dispatchId: "NEXT" }));
    const seen = () => peer.calls.map(({ metadata }) => metadata["hookledger-dispatch"]);
    await peer.until(() => seen().includes("NEXT"));
    expect(seen()).not.toContain("ABORTED");
  });

  it("should be crashed once the channel is closed", async () => {
    const closed = await subscriberOf(peer);
    await closed.close();
    await closed.close();
    expect(summary(await closed.invoke(call("veto")))).toBe(CRASHED);
  });
});

describe("a peer that is no gRPC server", () => {
  it.each(["http1", "raw"] as const)("should be crashed in every mode when it is %s", async (kind) => {
    const peer = await Peer.start({ kind });
    const subscriber = await subscriberOf(peer);
    const answers = await Promise.all(MODES.map((mode) => subscriber.invoke(call(mode))));
    expect(answers.map(summary)).toEqual([CRASHED, CRASHED, CRASHED]);
    await subscriber.close();
    await peer.stop();
  });

  it("should be waited for until the deadline when it accepts and says nothing", async () => {
    const peer = await Peer.start({ kind: "silent" });
    const subscriber = await subscriberOf(peer);
    expect(summary(await subscriber.invoke(call("veto", { timeoutMs: 50 })))).toBe("failed TIMEOUT");
    await subscriber.close();
    await peer.stop();
  });

  it.each(["exit", "crash"])("should be crashed in every mode on %s in mid-call", async (behaviour) => {
    for (const mode of MODES) {
      const peer = await Peer.start();
      const subscriber = await subscriberOf(peer);
      expect(summary(await subscriber.invoke(call(mode, { turn: behaviour })))).toBe(CRASHED);
      await subscriber.close();
      await peer.stop();
    }
  });
});
