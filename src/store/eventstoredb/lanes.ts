/** One lane a stream. Those that rest are forgotten, the oldest first: their streams say where they stand. */
import type { StreamName } from "../port.js";
import { Lane, type LaneContext } from "./lane.js";
import type { Job } from "./task.js";

const MAX_LANES = 4096;

export class Lanes {
  readonly #context: LaneContext;
  readonly #lanes = new Map<StreamName, Lane>();

  constructor(context: LaneContext) {
    this.#context = context;
  }

  take(job: Job): void {
    const { stream } = job.request;
    const lane = this.#lanes.get(stream) ?? new Lane(stream, this.#context);
    this.#lanes.delete(stream);
    this.#lanes.set(stream, lane);
    lane.take(job);
    this.#forget();
  }

  #forget(): void {
    let surplus = this.#lanes.size - MAX_LANES;
    if (surplus <= 0) return;
    for (const [stream, lane] of this.#lanes) {
      if (lane.idle) this.#lanes.delete(stream);
      if (--surplus <= 0) return;
    }
  }
}
