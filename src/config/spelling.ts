const MAX_CHARS = 64;

/** A hint for a name that is not among the known ones: the nearest of them, or all of them. */
export function didYouMean(name: string, known: readonly string[]): string {
  const near = nearest(name, known);
  return near === undefined ? `known here: ${known.join(", ")}` : `did you mean "${near}"?`;
}

/** The known name that is fewest edits away, if that is no more than a third of its length (one edit, if it is short). */
export function nearest(name: string, known: readonly string[]): string | undefined {
  if (name.length > MAX_CHARS) return undefined;
  let best: string | undefined;
  let fewest = Number.POSITIVE_INFINITY;
  for (const candidate of known) {
    const edits = editDistance(name.toLowerCase(), candidate);
    const allowed = Math.max(Math.min(1, candidate.length - 1), Math.floor(candidate.length / 3));
    if (edits < fewest && edits <= allowed) {
      fewest = edits;
      best = candidate;
    }
  }
  return best;
}

/** Insertions, deletions, replacements and swaps of neighbours that turn `a` into `b`. */
function editDistance(a: string, b: string): number {
  let before: number[] = [];
  let above = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const replaced = (above[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      const swapped = a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1] ? (before[j - 2] ?? 0) + 1 : replaced;
      row.push(Math.min(replaced, swapped, (above[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1));
    }
    before = above;
    above = row;
  }
  return above[b.length] ?? 0;
}
