/**
 * Tokens of HCL2's native syntax, cut exactly where HashiCorp's own scanner cuts them (test/interop/hcl compares the two),
 * also in text that is no valid HCL. White space and comments leave no token; a comment that ends its line leaves the
 * newline. Nothing recurses and nothing is read twice.
 */

export type TokenKind =
  | "newline"
  | "ident"
  | "number"
  | "{"
  | "}"
  | "["
  | "]"
  | "("
  | ")"
  | "="
  | ":"
  | ","
  | "?"
  | "-"
  | "!"
  | "*"
  | "operator"
  | "quote"
  | "end-quote"
  | "heredoc"
  | "end-heredoc"
  | "literal"
  | "template"
  | "end-template"
  | "invalid"
  | "eof";

/** `start` and `end` are UTF-16 offsets. */
export type Token = { readonly kind: TokenKind; readonly start: number; readonly end: number };

const IDENT = /[\p{ID_Start}_][\p{ID_Continue}-]*/uy;
/** Without the dots it may end with. */
const NUMBER = /\d(?:\d|\.|[eE][+-]?\d)*/y;
const HEREDOC = /<<-?([\p{ID_Start}_][\p{ID_Continue}-]*)\r?\n/uy;
const OPERATOR = /==|!=|>=|<=|&&|\|\||=>|\.\.\.|::|[+/%.<>*]/y;
const SINGLE = new Set<string>(["{", "[", "]", "(", ")", "=", ":", ",", "?", "-", "!", "*"] satisfies TokenKind[]);
/** White space as Go's bytes.TrimSpace knows it, around a heredoc's closing marker. */
const SPACE = /[\t-\r \u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]*/y;

type Mode =
  /** `braces`: how many are open where a template began, its own included; null outside a template. */
  | { readonly kind: "main"; readonly braces: number | null }
  | { readonly kind: "string" }
  | { readonly kind: "heredoc"; readonly marker: string; startOfLine: boolean };

export function lex(text: string): readonly Token[] {
  return new Lexer(text).run();
}

class Lexer {
  readonly #text: string;
  readonly #tokens: Token[] = [];
  /** Modes around the current one. */
  readonly #stack: Mode[] = [];
  #mode: Mode = { kind: "main", braces: null };
  #braces = 0;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  run(): readonly Token[] {
    while (this.#at < this.#text.length) {
      switch (this.#mode.kind) {
        case "main":
          this.#main();
          break;
        case "string":
          this.#string();
          break;
        case "heredoc":
          this.#heredoc(this.#mode);
          break;
      }
    }
    this.#push("eof", this.#at);
    return this.#tokens;
  }

  #main(): void {
    const char = this.#text[this.#at] ?? "";
    switch (char) {
      case " ":
      case "\t":
        this.#at++;
        return;
      case "\n":
        this.#push("newline", this.#at + 1);
        return;
      case "\r":
        if (this.#text[this.#at + 1] === "\n") this.#push("newline", this.#at + 2);
        else this.#push("invalid", this.#at + 1);
        return;
      case "#":
        this.#lineComment();
        return;
      case '"':
        this.#push("quote", this.#at + 1);
        this.#enter({ kind: "string" });
        return;
      case "{":
        this.#braces++;
        this.#push("{", this.#at + 1);
        return;
      case "}":
        this.#closeBrace(1);
        return;
      case "~":
        if (this.#text[this.#at + 1] === "}") this.#closeBrace(2);
        else this.#push("invalid", this.#at + 1);
        return;
      case "/":
        if (this.#text[this.#at + 1] === "/") this.#lineComment();
        else if (this.#text[this.#at + 1] === "*") this.#blockComment();
        else this.#push("operator", this.#at + 1);
        return;
      default:
        this.#word(char);
    }
  }

  #word(char: string): void {
    const heredoc = char === "<" ? this.#match(HEREDOC) : null;
    if (heredoc !== null) {
      this.#push("heredoc", this.#at + heredoc[0].length);
      this.#enter({ kind: "heredoc", marker: heredoc[1] ?? "", startOfLine: true });
      return;
    }
    const { kind, length } = this.#wordToken(char);
    this.#push(kind, this.#at + length);
  }

  #wordToken(char: string): { readonly kind: TokenKind; readonly length: number } {
    const number = this.#match(NUMBER);
    if (number !== null) return { kind: "number", length: withoutTrailingDots(number[0]).length };
    const ident = this.#match(IDENT);
    if (ident !== null) return { kind: "ident", length: ident[0].length };
    const operator = this.#match(OPERATOR)?.[0] ?? "";
    if (isSingle(char) && operator.length <= 1) return { kind: char, length: 1 };
    if (operator !== "") return { kind: "operator", length: operator.length };
    return { kind: "invalid", length: (this.#text.codePointAt(this.#at) ?? 0) > 0xffff ? 2 : 1 };
  }

  /** Up to and including the end of the line, which counts as a newline. */
  #lineComment(): void {
    const newline = this.#text.indexOf("\n", this.#at);
    if (newline < 0) this.#at = this.#text.length;
    else this.#push("newline", newline + 1);
  }

  /** One without an end is no comment to the grammar, and never valid: nothing behind it is looked at. */
  #blockComment(): void {
    const end = this.#text.indexOf("*/", this.#at + 2);
    if (end < 0) this.#push("invalid", this.#at + 2);
    this.#at = end < 0 ? this.#text.length : end + 2;
  }

  #closeBrace(length: number): void {
    const end = this.#at + length;
    if (this.#mode.kind === "main" && this.#mode.braces === this.#braces) {
      this.#push("end-template", end);
      this.#mode = this.#stack.pop() ?? this.#mode;
    } else {
      this.#push(length === 1 ? "}" : "end-template", end);
    }
    this.#braces--;
  }

  #string(): void {
    const char = this.#text[this.#at];
    if (char === '"') {
      this.#push("end-quote", this.#at + 1);
      this.#mode = this.#stack.pop() ?? this.#mode;
    } else if (char === "\r" || char === "\n") {
      let end = this.#at + 1;
      while (this.#text[end] === "\r" || this.#text[end] === "\n") end++;
      this.#push("invalid", end);
    } else if (!this.#template()) {
      this.#quotedLiteral();
    }
  }

  #quotedLiteral(): void {
    const text = this.#text;
    let end = this.#at;
    while (end < text.length) {
      const char = text[end];
      if (char === '"' || char === "\r" || char === "\n") break;
      if (char === "\\") {
        const escaped = text[end + 1];
        if (escaped === undefined || escaped === "\r" || escaped === "\n") break;
        end += 2;
      } else {
        const length = literalLength(text, end);
        if (length === 0) break;
        end += length;
      }
    }
    // A backslash before the end of the line, or a dollar before the end of the text, stands for nothing.
    this.#push(end === this.#at ? "invalid" : "literal", Math.max(end, this.#at + 1));
  }

  #heredoc(mode: Mode & { kind: "heredoc" }): void {
    if (this.#template()) {
      mode.startOfLine = false;
      return;
    }
    const text = this.#text;
    let end = this.#at;
    while (end < text.length && text[end] !== "\n") {
      const length = literalLength(text, end);
      if (length === 0 || (text[end] === "\r" && text[end + 1] !== "\n")) break;
      end += length;
    }
    if (text[end] !== "\n") {
      mode.startOfLine = false;
      if (end > this.#at) this.#push("literal", end);
      // A lone carriage return, or a dollar before the end of the text: the grammar reads no further.
      if (end < text.length && (text[end] === "\r" || text[end + 1] !== "{")) this.#push("invalid", text.length);
      return;
    }
    if (mode.startOfLine && isMarkerLine(text.slice(this.#at, end), mode.marker)) {
      this.#push("end-heredoc", text[end - 1] === "\r" ? end - 1 : end);
      this.#mode = this.#stack.pop() ?? this.#mode;
      return;
    }
    mode.startOfLine = true;
    this.#push("literal", end + 1);
  }

  /** Enters `${` or `%{` if one stands here. */
  #template(): boolean {
    const char = this.#text[this.#at];
    if ((char !== "$" && char !== "%") || this.#text[this.#at + 1] !== "{") return false;
    this.#push("template", this.#at + (this.#text[this.#at + 2] === "~" ? 3 : 2));
    this.#braces++;
    this.#enter({ kind: "main", braces: this.#braces });
    return true;
  }

  #enter(mode: Mode): void {
    this.#stack.push(this.#mode);
    this.#mode = mode;
  }

  #match(pattern: RegExp): RegExpExecArray | null {
    pattern.lastIndex = this.#at;
    return pattern.exec(this.#text);
  }

  #push(kind: TokenKind, end: number): void {
    this.#tokens.push({ kind, start: this.#at, end });
    this.#at = end;
  }
}

/** Length of the character or escaped template here; 0 where a template, or nothing that the grammar knows, begins. */
function literalLength(text: string, offset: number): 0 | 1 | 3 {
  const char = text[offset];
  if (char !== "$" && char !== "%") return 1;
  const next = text[offset + 1];
  if (next === "{" || next === undefined) return 0;
  return next === char && text[offset + 2] === "{" ? 3 : 1;
}

function isMarkerLine(line: string, marker: string): boolean {
  const start = spaceAt(line, 0);
  const rest = start + marker.length;
  return line.startsWith(marker, start) && rest + spaceAt(line, rest) === line.length;
}

/** Length of the white space at an offset. */
function spaceAt(text: string, offset: number): number {
  SPACE.lastIndex = offset;
  return SPACE.exec(text)?.[0].length ?? 0;
}

function withoutTrailingDots(number: string): string {
  let end = number.length;
  while (number[end - 1] === ".") end--;
  return number.slice(0, end);
}

function isSingle(char: string): char is TokenKind {
  return SINGLE.has(char);
}
