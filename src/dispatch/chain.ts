/** The frozen chain of a hook point: who stands where, and how to reach them. */

import type { Recording } from "../config/types.js";
import type { PolicyItem, Subscriber } from "../core/events.js";
import type { HookPoint } from "../core/points.js";
import type { Answer } from "../payload/answer.js";
import type { Payload } from "../payload/payload.js";
import type { Invocation } from "../subscribers/port.js";

/** The kernel's own policy answers with the stamped plan and a verdict an item. */
export type PolicyAnswer = {
  readonly class: "policy";
  readonly payload: Payload;
  readonly items: readonly PolicyItem[];
  readonly warnings?: readonly string[];
};
export type ChainAnswer = Answer | PolicyAnswer;

/** `P`: what subscribers are given. `A`: what they answer. `N`: how hooks are named. */
export interface ChainTransport<P = Payload, A = ChainAnswer, N extends string = HookPoint> {
  invoke(call: Invocation<P, N>): Promise<A>;
}

export type Link<P = Payload, A = ChainAnswer, N extends string = HookPoint> = {
  readonly subscriber: Subscriber;
  readonly transport: ChainTransport<P, A, N>;
  readonly recording: Recording;
};

export type FrozenChain = {
  readonly point: HookPoint;
  readonly vetoBearing: boolean;
  readonly links: readonly Link[];
  /** The same list object in every dispatch. */
  readonly subscribers: readonly Subscriber[];
};

/** The chains of a kernel. */
export interface Chains {
  /** With everybody started whose start is due; the same object as long as the same ones answer. */
  at(point: HookPoint): FrozenChain | Promise<FrozenChain>;
  /** Starts nobody: calls of who does not run fail. */
  asItStands(point: HookPoint): FrozenChain;
}
