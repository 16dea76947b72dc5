import type { Token, TokenKind } from "./lexer.js";

export const MAX_NESTING = 64;

const DIRECTIVE = /%\{~?[ \t\r\n]*(if|for|endif|endfor)\b/y;

/** What is open: its own weight, and how much deeper the operators and directives in it nest so far. */
type Level = { readonly opener: TokenKind; readonly weight: 0 | 1; operators: number };

/**
 * The first token at which a text nests deeper than 64, or null. Counted is everything at which a grammar recurses:
 * brackets and braces, templates, `if` and `for` directives, and the operators whose operand is a whole expression
 * (`?`, prefix `-` and `!`, `[*]`).
 */
export function tooDeep(text: string, tokens: readonly Token[]): Token | null {
  const levels: Level[] = [];
  let level: Level = { opener: "eof", weight: 0, operators: 0 };
  let depth = 0;
  let prefixes = 0;
  let previous: TokenKind = "newline";
  const add = (operators: number) => {
    const most = Math.max(operators, -level.operators);
    level.operators += most;
    depth += most;
  };
  for (const token of tokens) {
    const { kind } = token;
    prefixes = isPrefix(kind, previous) ? prefixes + 1 : 0;
    if (isOpener(kind)) {
      if (kind === "template") add(directiveDepth(text, token));
      levels.push(level);
      level = { opener: kind, weight: kind === "quote" || kind === "heredoc" ? 0 : 1, operators: 0 };
      depth += level.weight;
    } else if (isCloser(kind)) {
      depth -= level.weight + level.operators;
      level = levels.pop() ?? { opener: "eof", weight: 0, operators: 0 };
      if (kind === "]" && previous === "*") add(1);
    } else if (kind === "?") {
      add(1);
    } else if (kind === "," || (kind === "newline" && (level.opener === "{" || level.opener === "eof"))) {
      add(-level.operators);
    }
    if (depth + prefixes > MAX_NESTING) return token;
    previous = kind;
  }
  return null;
}

function isPrefix(kind: TokenKind, previous: TokenKind): boolean {
  if (kind !== "-" && kind !== "!") return false;
  return previous !== "ident" && previous !== "number" && !isCloser(previous);
}

function isOpener(kind: TokenKind): boolean {
  return kind === "{" || kind === "[" || kind === "(" || kind === "quote" || kind === "heredoc" || kind === "template";
}

function isCloser(kind: TokenKind): boolean {
  return (
    kind === "}" ||
    kind === "]" ||
    kind === ")" ||
    kind === "end-quote" ||
    kind === "end-heredoc" ||
    kind === "end-template"
  );
}

function directiveDepth(text: string, template: Token): -1 | 0 | 1 {
  DIRECTIVE.lastIndex = template.start;
  switch (DIRECTIVE.exec(text)?.[1]) {
    case "if":
    case "for":
      return 1;
    case "endif":
    case "endfor":
      return -1;
    default:
      return 0;
  }
}
