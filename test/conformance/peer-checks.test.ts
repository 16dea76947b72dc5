import { describe, expect, it } from "vitest";
import type { PointMessages } from "#src/payload/messages.js";
import { recordsOf } from "#src/payload/records.js";
import { block, bytes, int } from "../payload/wire.js";
import { checked, failureOf, failuresIn, peerSubject } from "./checked.js";
import {
  ack,
  type Behaviour,
  type PeerAnswer,
  type PeerRequest,
  startPeer,
  transformed,
  UNIMPLEMENTED,
  verdict,
  wellBehaved,
} from "./peer.js";

/** Serves one point in one mode, and is otherwise as it should be. */
function serving(
  point: string,
  mode: string,
  behaviour: (request: PeerRequest) => PeerAnswer | Promise<PeerAnswer>,
): Behaviour {
  return (request) => {
    if (request === null) return wellBehaved(request);
    return request.payload.point === point && request.mode === mode ? behaviour(request) : UNIMPLEMENTED;
  };
}

async function check(behaviour: Behaviour, runs = 30, timeoutMs = 2_000) {
  return checked(await peerSubject(await startPeer(behaviour)), { runs, timeoutMs });
}

describe("conformance of a gRPC peer", () => {
  it("should pass one that does nothing, at every point", async () => {
    const results = await check(wellBehaved, 4);
    expect(failuresIn(results)).toEqual([]);
    expect(new Set(results.map(({ point, mode }) => `${point} ${mode}`)).size).toBe(18);
    expect(new Set(results.map(({ check }) => check.name)).size).toBe(9);
  });

  it("should check only where it does not answer UNIMPLEMENTED", async () => {
    const results = await check(serving("plan-ready", "veto", wellBehaved), 4);
    expect(new Set(results.map(({ point, mode }) => `${point} ${mode}`))).toEqual(new Set(["plan-ready veto"]));
    expect(failuresIn(results)).toEqual([]);
  });

  it("should say of one that does not answer that it does not, whoever ends the call first", async () => {
    const silent = serving("plan-ready", "veto", () => new Promise<never>(() => {}));
    const results = await check(silent, 4, 30);
    expect(failuresIn(results)).toHaveLength(1);
    expect(failureOf(results, "answer").message).toBe("no answer within 30 ms");
  });

  let hung = false;
  let last: PeerRequest;
  let asked = 0;

  it.each<[check: string, behaviour: Behaviour]>([
    [
      "answer",
      serving("pre-tool-call", "veto", ({ payload }) => {
        const { call } = payload.view as PointMessages["pre-tool-call"];
        return verdict((call?.toolName.length ?? 0) > 3 ? 0 : 1);
      }),
    ],
    [
      "identity",
      serving("session-end", "transform", ({ payload }) => {
        // The status once more, and another one: the last counts.
        const [record] = recordsOf(payload.bytes).filter(({ number }) => number === 8);
        const inner = payload.bytes.subarray(record!.value, record!.end);
        const rest = payload.bytes.subarray(record!.end);
        return transformed(bytes(block(8, inner, int(2, inner.includes(0x07) ? 6 : 7)), rest));
      }),
    ],
    ["determinism", serving("plan-ready", "veto", () => verdict((asked++ % 2) + 1))],
    [
      // Once it met a short deadline, it takes no more calls for a while.
      "deadline",
      serving("session-start", "observe", ({ timeoutMs }) => {
        const stuck = hung;
        hung = timeoutMs <= 30;
        return stuck || hung ? "hang" : ack();
      }),
    ],
    [
      "concurrency",
      serving("session-start", "transform", async (request) => {
        last = request;
        await new Promise((resolve) => setTimeout(resolve, 2));
        return transformed(last.payload.bytes);
      }),
    ],
    ["hostile", (request) => (request === null ? "drop" : serving("plan-ready", "veto", wellBehaved)(request))],
  ])("should fail by %s alone", async (name, behaviour) => {
    expect(failuresIn(await check(behaviour, 30, name === "deadline" ? 200 : undefined))).toEqual([name]);
  });

  it("should fail by unknown-fields who answers an error to them", async () => {
    const behaviour = serving("session-start", "observe", ({ payload }) => {
      return Buffer.from(payload.bytes).includes(Buffer.of(0xa2, 0x38)) ? { status: 3 } : ack();
    });
    expect(failuresIn(await check(behaviour, 100))).toEqual(["unknown-fields"]);
  });

  it("should shrink hostile bytes, and say what they did", async () => {
    const results = await check((request) =>
      request === null ? "drop" : serving("plan-ready", "veto", wellBehaved)(request),
    );
    const failure = failureOf(results, "hostile");
    expect(failure.message).toMatch(/^it broke off: /);
    expect(failure.specimen?.kind === "request" && failure.specimen.bytes.length).toBeLessThan(40);
  });

  it("should fail by hostile who does not answer to bytes that are no request", async () => {
    const behaviour: Behaviour = (request) =>
      request === null ? "hang" : serving("plan-ready", "veto", wellBehaved)(request);
    const failure = failureOf(await check(behaviour, 2, 200), "hostile");
    expect(failure.message).toBe("no answer, and no error, within 200 ms");
  });
});
