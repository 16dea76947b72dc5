// @ts-check
/** @import { CallInfo, Endpoint, Failure, Outcome, Point, Target } from "./types.js" */

/** @typedef {(call: CallInfo) => Outcome | Promise<Outcome>} Act */

/** @type {Outcome} */
const GO_ON = { kind: "go-on" };

/** One fault: strikes the calls that its target names, and says how often it did. */
export class Fault {
  #target;
  #act;
  #skip;
  #left;
  /** @type {() => void} */
  #struck = () => {};
  /** How often it struck. */
  fired = 0;
  /** Resolves when it strikes for the first time. @type {Promise<void>} */
  struck = new Promise((resolve) => {
    this.#struck = resolve;
  });

  /**
   * @param {Point} point
   * @param {Target} target
   * @param {Act} act
   */
  constructor(point, target, act) {
    this.point = point;
    this.#target = target;
    this.#act = act;
    this.#skip = target.skip ?? 0;
    this.#left = target.times ?? 1;
  }

  /** Takes its turn if the call is one of its own. @param {CallInfo} call @returns {boolean} */
  claims(call) {
    if (this.#left === 0 || !matches(this.#target, call)) return false;
    if (this.#skip > 0) {
      this.#skip -= 1;
      return false;
    }
    this.#left -= 1;
    this.fired += 1;
    return true;
  }

  /** @param {CallInfo} call */
  async strike(call) {
    this.#struck();
    return this.#act(call);
  }

  /** Strikes no more. */
  remove() {
    this.#left = 0;
  }
}

/** The switchboard. Several faults may meet one call: they act in the order in which they were put in; the first that ends it wins. */
export class Faults {
  /** @type {Fault[]} */
  #faults = [];

  /**
   * What happens to this call here; null if nothing does.
   * @param {Point} point
   * @param {CallInfo} call
   * @returns {Promise<Outcome> | null}
   */
  meet(point, call) {
    if (this.#faults.length === 0) return null;
    const striking = this.#faults.filter((fault) => fault.point === point && fault.claims(call));
    return striking.length === 0 ? null : strikeAll(striking, call);
  }

  clear() {
    for (const fault of this.#faults) fault.remove();
    this.#faults = [];
  }

  /** The write is done, its reply never comes: the call hangs, or its connection is cut. @param {Target} target @param {"hang" | "cut"} how */
  loseReply(target, how = "hang") {
    return this.#add("done", target, () => ({ kind: how === "cut" ? "cut" : "silence" }));
  }

  /** Nothing is done and nothing is ever answered. @param {Target} target */
  ignore(target) {
    return this.#add("arrived", target, () => ({ kind: "silence" }));
  }

  /** The connection is cut when the call has arrived; nothing is done. @param {Target} target */
  cut(target) {
    return this.#add("arrived", target, () => ({ kind: "cut" }));
  }

  /** The connection is cut after this many messages of an append that is not complete. @param {Target} target @param {number} messages */
  cutAfterMessages(target, messages = 1) {
    return this.#add("part", { ...target, skip: (target.skip ?? 0) + messages - 1 }, () => ({ kind: "cut" }));
  }

  /** Waits before anything is done. Later messages of the same call are not even read: who sends them feels back-pressure. @param {Target} target @param {Promise<unknown>} until */
  holdWrite(target, until) {
    return this.#add("arrived", target, () => until.then(() => GO_ON));
  }

  /** Done, but answered later only. Other replies of the same call overtake it. @param {Target} target @param {Promise<unknown>} until */
  holdReply(target, until) {
    return this.#add("done", target, () => until.then(() => GO_ON));
  }

  /** @param {Target} target @param {number} ms */
  delay(target, ms) {
    return this.#add("arrived", target, () => new Promise((resolve) => setTimeout(resolve, ms, GO_ON)));
  }

  /** Replies wait until there are `count` of them, and go out in reverse order. @param {Target} target @param {number} count */
  reverseReplies(target, count) {
    /** @type {((outcome: Outcome) => void)[]} */
    const waiting = [];
    return this.#add("done", { times: count, ...target }, () => {
      const held = /** @type {Promise<Outcome>} */ (new Promise((resolve) => waiting.push(resolve)));
      if (waiting.length === count) void releaseOneByOne(waiting.splice(0).reverse());
      return held;
    });
  }

  /** UNAVAILABLE, nothing done. @param {Target} target */
  refuse(target) {
    return this.#fail("arrived", target, { kind: "unavailable" });
  }

  /** The server's own timeout, of a write that was done or was not. @param {Target} target @param {{ readonly written: boolean }} write */
  timeOut(target, { written }) {
    return this.#fail(written ? "done" : "arrived", target, { kind: "timeout" });
  }

  /** @param {Target} target */
  deny(target) {
    return this.#fail("arrived", target, { kind: "denied" });
  }

  /** As a node answers that has lost the leadership. null: it does not know who leads. @param {Target} target @param {Endpoint | null} leader */
  notLeader(target, leader) {
    return this.#fail("arrived", target, { kind: "not-leader", leader });
  }

  /**
   * @param {Point} point
   * @param {Target} target
   * @param {Failure} failure
   */
  #fail(point, target, failure) {
    return this.#add(point, target, () => ({ kind: "fail", failure }));
  }

  /**
   * @param {Point} point
   * @param {Target} target
   * @param {Act} act
   */
  #add(point, target, act) {
    const fault = new Fault(point, target, act);
    this.#faults.push(fault);
    return fault;
  }
}

/**
 * @param {readonly Fault[]} faults
 * @param {CallInfo} call
 * @returns {Promise<Outcome>}
 */
async function strikeAll(faults, call) {
  for (const fault of faults) {
    const outcome = await fault.strike(call);
    if (outcome.kind !== "go-on") return outcome;
  }
  return GO_ON;
}

/** @param {readonly ((outcome: Outcome) => void)[]} releases */
async function releaseOneByOne(releases) {
  for (const release of releases) {
    await new Promise((resolve) => setImmediate(resolve));
    release(GO_ON);
  }
}

/**
 * @param {Target} target
 * @param {CallInfo} call
 */
function matches({ method, stream, where }, call) {
  if (method !== undefined && !(typeof method === "string" ? [method] : method).includes(call.method)) return false;
  if (typeof stream === "string" && stream !== call.stream) return false;
  if (stream instanceof RegExp && !stream.test(call.stream)) return false;
  return where === undefined || where(call);
}
