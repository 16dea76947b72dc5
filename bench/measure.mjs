// Timing for the benchmarks: medians of several rounds, percentiles of single calls, and ratios printed beside each other.

/** µs a call: the median of `rounds` rounds of `calls` calls each, after a warm-up. `run` may be async. */
export async function perCall(run, { calls, rounds = 7, before = () => {} }) {
  const rates = [];
  for (let round = 0; round <= rounds; round++) {
    await before();
    const start = performance.now();
    for (let i = 0; i < calls; i++) await run(i);
    if (round > 0) rates.push(((performance.now() - start) * 1000) / calls);
  }
  return rates.sort((a, b) => a - b)[Math.floor(rates.length / 2)];
}

/** The same for what is synchronous: awaiting it would measure the await. */
export function perSyncCall(run, { calls, rounds = 7 }) {
  const rates = [];
  for (let round = 0; round <= rounds; round++) {
    const start = performance.now();
    for (let i = 0; i < calls; i++) run(i);
    if (round > 0) rates.push(((performance.now() - start) * 1000) / calls);
  }
  return rates.sort((a, b) => a - b)[Math.floor(rates.length / 2)];
}

/** Latencies of single calls in ms, of several subjects in turn, so that the machine's moods hit all alike. */
export async function interleaved(subjects, { calls, warmUp }) {
  const latencies = new Map(subjects.map(({ name }) => [name, []]));
  for (let i = 0; i < warmUp + calls; i++) {
    for (const { name, run } of subjects) {
      const start = performance.now();
      await run(i);
      if (i >= warmUp) latencies.get(name).push(performance.now() - start);
    }
  }
  return latencies;
}

export function percentile(values, p) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor((sorted.length * p) / 100))];
}

export function heading(title, what, not) {
  console.log(`\n${title}\n  measures: ${what}\n  does not measure: ${not}`);
}

export function row(name, value, note = "") {
  console.log(`  ${name.padEnd(44)} ${value.padStart(14)}  ${note}`.trimEnd());
}
