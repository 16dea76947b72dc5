/** Our own colours: on a terminal, unless somebody asked for none. */

export type Style = { readonly [name in keyof typeof CODES]: (text: string) => string };

const CODES = {
  bold: [1, 22],
  dim: [2, 22],
  red: [31, 39],
  green: [32, 39],
  yellow: [33, 39],
  cyan: [36, 39],
} as const satisfies Record<string, readonly [on: number, off: number]>;

export function createStyle(enabled: boolean): Style {
  const paint = ([on, off]: readonly [number, number]) =>
    enabled ? (text: string) => `\u001b[${on}m${text}\u001b[${off}m` : (text: string) => text;
  return {
    bold: paint(CODES.bold),
    dim: paint(CODES.dim),
    red: paint(CODES.red),
    green: paint(CODES.green),
    yellow: paint(CODES.yellow),
    cyan: paint(CODES.cyan),
  };
}

/** `NO_COLOR` (not empty), `FORCE_COLOR=0` and a dumb terminal say no, as `--no-color` does; nothing turns a pipe colourful. */
export function wantsColor(isTerminal: boolean, env: Readonly<Record<string, string | undefined>>): boolean {
  const { NO_COLOR, FORCE_COLOR, TERM } = env;
  if (!isTerminal || TERM === "dumb" || FORCE_COLOR === "0" || FORCE_COLOR === "false") return false;
  return NO_COLOR === undefined || NO_COLOR === "";
}
