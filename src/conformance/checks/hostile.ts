import { receive } from "../../subscribers/grpc-fault.js";
import { type Check, EVERY_MODE } from "../check.js";
import { hostileRequests } from "../hostile-requests.js";

export const hostile: Check = {
  name: "hostile",
  why: "What comes over a socket can be anything; a subscriber that dies of it takes every session with it.",
  rule: "Bytes that are no valid request get an error or an answer, the connection stays, and the next valid call is answered.",
  takes: "request",
  modes: EVERY_MODE,
  share: 1,
  arbitrary: hostileRequests,
  async judge(bench, request) {
    const { subject, mode, timeoutMs } = bench;
    if (subject.exchange === null) return null;
    const reply = await subject.exchange(request, timeoutMs);
    const facts = { mode, requestSize: request.byteLength, maxMessageBytes: MAX_ANSWER_BYTES, remainingMs: () => 0 };
    const received = receive(reply, facts);
    const answer = received.ok ? null : received.answer;
    const category = answer?.class === "failed" ? answer.error.category : null;
    if (category === "TIMEOUT") return `no answer, and no error, within ${timeoutMs} ms`;
    if (category === "PROCESS_CRASHED" && answer?.class === "failed") return `it broke off: ${answer.error.message}`;
    const after = await bench.fault(bench.usual);
    return after === null ? null : `the next valid call failed: ${after}`;
  },
};

const MAX_ANSWER_BYTES = 64 * 1024 * 1024;
