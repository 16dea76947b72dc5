import { describe, expect, it } from "vitest";
import { durationMs, momentMs, showDuration } from "#src/cli/time.js";

const NOW = Date.UTC(2026, 1, 28, 12);

describe("durationMs", () => {
  it.each([
    ["500ms", 500],
    ["30s", 30_000],
    ["10m", 600_000],
    ["2h", 7_200_000],
    ["7d", 604_800_000],
    ["2w", 1_209_600_000],
    ["0s", 0],
  ])("should read %s", (text, ms) => expect(durationMs(text)).toBe(ms));

  it.each(["", "5", "h", "-5s", "1.5h", "5 s", "5y", "5constructor", "9999999999999s"])("should refuse %j", (text) =>
    expect(durationMs(text)).toBeNull(),
  );
});

describe("momentMs", () => {
  it.each([
    ["2026-02-27T09:30:00Z", Date.UTC(2026, 1, 27, 9, 30)],
    ["2026-02-27T09:30:00.250+01:00", Date.UTC(2026, 1, 27, 8, 30, 0, 250)],
    ["2026-02-27T09:30Z", Date.UTC(2026, 1, 27, 9, 30)],
    ["2026-02-27", Date.UTC(2026, 1, 27)],
    ["2h", NOW - 7_200_000],
  ])("should read %s", (text, ms) => expect(momentMs(text, NOW)).toBe(ms));

  it.each(["", "yesterday", "2026-02-31", "2026-13-01", "2026-02-27T25:00:00Z", "27.02.2026", "1772186400"])(
    "should refuse %j",
    (text) => expect(momentMs(text, NOW)).toBeNull(),
  );
});

describe("showDuration", () => {
  it.each([
    [0, "0 µs"],
    [0.64, "640 µs"],
    [1.9, "1.9 ms"],
    [10, "10 ms"],
    [250.4, "250 ms"],
    [3420, "3.42 s"],
    [600_000, "10 min"],
    [7_560_000, "2.1 h"],
  ])("should show %d ms", (ms, text) => expect(showDuration(ms)).toBe(text));
});
