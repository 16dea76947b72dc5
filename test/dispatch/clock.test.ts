import { afterEach, describe, expect, it, vi } from "vitest";
import { systemClock } from "#src/dispatch/clock.js";

afterEach(() => {
  vi.useRealTimers();
});

describe("the system's clock", () => {
  it("should go on, whatever a module puts in the place of the global timers", async () => {
    vi.useFakeTimers();
    const begun = systemClock.now();
    const wall = systemClock.wall();
    await new Promise<void>((fired) => systemClock.timer(5, fired));
    await new Promise<void>((run) => systemClock.defer(run));
    expect(systemClock.now() - begun).toBeGreaterThan(3);
    expect(systemClock.wall()).toBeGreaterThan(wall);
  });
});
