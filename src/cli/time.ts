/** Times and durations as people write them. */

const UNITS = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 } as const;
const DURATION = /^(\d{1,12})(ms|s|m|h|d|w)$/;
const ISO = /^\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:Z|[+-]\d{2}:\d{2})?)?$/;

/** `500ms`, `30s`, `10m`, `2h`, `7d`, `2w` in ms; null for anything else. */
export function durationMs(text: string): number | null {
  const [, count, unit] = DURATION.exec(text) ?? [];
  if (count === undefined || !isUnit(unit)) return null;
  return Number(count) * UNITS[unit];
}

/** ISO 8601 (a date alone is its start in UTC, a time without an offset is local) or a duration before `now`, in ms since 1970. */
export function momentMs(text: string, now: number): number | null {
  const duration = durationMs(text);
  if (duration !== null) return now - duration;
  if (!ISO.test(text)) return null;
  const moment = Date.parse(text);
  return Number.isNaN(moment) || !isRealDay(text) ? null : moment;
}

/** `Date.parse` takes 31 February for a day in March. */
function isRealDay(text: string): boolean {
  const day = text.slice(0, 10);
  const parsed = Date.parse(`${day}T00:00:00Z`);
  return !Number.isNaN(parsed) && new Date(parsed).toISOString().startsWith(day);
}

function isUnit(unit: string | undefined): unit is keyof typeof UNITS {
  return unit !== undefined && Object.hasOwn(UNITS, unit);
}

/** `640 µs`, `1.9 ms`, `3.42 s`, `2.1 h`. */
export function showDuration(ms: number): string {
  if (ms < 1) return `${Math.round(ms * 1000)} µs`;
  if (ms < 1000) return `${digits(ms)} ms`;
  if (ms < 120_000) return `${digits(ms / 1000)} s`;
  return ms < 7_200_000 ? `${digits(ms / 60_000)} min` : `${digits(ms / 3_600_000)} h`;
}

function digits(value: number): string {
  return value >= 100 ? value.toFixed(0) : value.toPrecision(3).replace(/\.?0+$/, "");
}
