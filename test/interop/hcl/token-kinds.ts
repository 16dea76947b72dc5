import type { TokenKind } from "#src/config/lexer.js";

const KINDS: ReadonlyMap<string, TokenKind> = new Map<string, TokenKind>([
  ["Newline", "newline"],
  ["Ident", "ident"],
  ["NumberLit", "number"],
  ["OBrace", "{"],
  ["CBrace", "}"],
  ["OBrack", "["],
  ["CBrack", "]"],
  ["OParen", "("],
  ["CParen", ")"],
  ["Equal", "="],
  ["Colon", ":"],
  ["Comma", ","],
  ["Question", "?"],
  ["Minus", "-"],
  ["Bang", "!"],
  ["Star", "*"],
  ["OQuote", "quote"],
  ["CQuote", "end-quote"],
  ["OHeredoc", "heredoc"],
  ["CHeredoc", "end-heredoc"],
  ["QuotedLit", "literal"],
  ["StringLit", "literal"],
  ["TemplateInterp", "template"],
  ["TemplateControl", "template"],
  ["TemplateSeqEnd", "end-template"],
  ["Invalid", "invalid"],
  ["BadUTF8", "invalid"],
  ["QuotedNewline", "invalid"],
  ["Backtick", "invalid"],
  ["Apostrophe", "invalid"],
  ["Semicolon", "invalid"],
  ["BitwiseAnd", "invalid"],
  ["BitwiseOr", "invalid"],
  ["BitwiseXor", "invalid"],
  ["BitwiseNot", "invalid"],
  ["EOF", "eof"],
]);

/** Our kind of a token that the reference calls `type`; undefined for a comment that ends no line. */
export function kindOf(type: string, bytes: Uint8Array): TokenKind | undefined {
  const name = type.replace("hclsyntax.Token", "");
  if (name === "Comment") return bytes.at(-1) === 10 ? "newline" : undefined;
  return KINDS.get(name) ?? "operator";
}
