/** One turn a session at a time: who comes meanwhile waits in line, and not everybody may. */

export type SessionLimits = {
  /** Messages that may wait for the turns of one session before theirs. */
  readonly waitingPerSession: number;
  /** Messages taken at once, of all sessions, those that wait included. */
  readonly messages: number;
};

export class Sessions {
  readonly #limits: SessionLimits;
  /** Those who wait for a session whose turn is under way, first come first served. */
  readonly #lines = new Map<string, Set<() => void>>();
  #taken = 0;

  constructor(limits: SessionLimits) {
    this.#limits = limits;
  }

  /** Resolves with what ends the turn, once it is the session's only one. "aborted": its signal was, before it came to that. */
  async enter(key: string, signal: AbortSignal): Promise<(() => void) | "aborted" | "busy"> {
    if (signal.aborted) return "aborted";
    const line = this.#lines.get(key);
    const full = (line?.size ?? 0) >= this.#limits.waitingPerSession && line !== undefined;
    if (full || this.#taken >= this.#limits.messages) return "busy";
    this.#taken++;
    if (line === undefined) this.#lines.set(key, new Set());
    else if ((await turnIn(line, signal)) === "aborted") {
      this.#taken--;
      return "aborted";
    }
    return this.#leaving(key);
  }

  #leaving(key: string): () => void {
    let left = false;
    return () => {
      if (left) return;
      left = true;
      this.#taken--;
      const line = this.#lines.get(key);
      const [next] = line ?? [];
      if (next === undefined) this.#lines.delete(key);
      else next();
    };
  }
}

/** Whoever is called leaves the line; so does whoever is aborted first. */
function turnIn(line: Set<() => void>, signal: AbortSignal): Promise<"turn" | "aborted"> {
  return new Promise((resolve) => {
    const leave = (how: "turn" | "aborted"): void => {
      line.delete(call);
      signal.removeEventListener("abort", abort);
      resolve(how);
    };
    const call = (): void => leave("turn");
    const abort = (): void => leave("aborted");
    line.add(call);
    signal.addEventListener("abort", abort, { once: true });
  });
}
