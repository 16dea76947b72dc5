import { execFile, execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** HashiCorp's own parser, built from hclparse.go and run over many texts in one process. */
export type Reference = {
  parse(texts: readonly (string | Uint8Array)[], options?: { tokens?: boolean }): Promise<readonly Verdict[]>;
  close(): void;
};

export type Position = { readonly line: number; readonly column: number; readonly byte: number };
export type ReferenceItem = {
  readonly kind: "attribute" | "block";
  readonly name: string;
  readonly at: Position;
  readonly value: Position;
  readonly labels: readonly { readonly text: string; readonly at: Position }[];
  readonly body: readonly ReferenceItem[];
};
export type Verdict = {
  readonly ok: boolean;
  readonly error?: string;
  readonly body: readonly ReferenceItem[];
  readonly tokens?: readonly { readonly type: string; readonly start: number; readonly end: number }[];
};

export function buildReference(): Reference {
  const folder = mkdtempSync(join(tmpdir(), "hookledger-hclparse-"));
  const binary = join(folder, "hclparse");
  const source = fileURLToPath(new URL("hclparse.go", import.meta.url));
  const env = {
    ...process.env,
    GO111MODULE: "off",
    GOPATH: "/usr/share/gocode",
    GOCACHE: process.env["GOCACHE"] ?? join(folder, "cache"),
  };
  execFileSync("go", ["build", "-o", binary, source], { env, stdio: ["ignore", "inherit", "inherit"] });
  return {
    parse: (texts, options = {}) => run(binary, texts, options.tokens ?? false),
    close: () => rmSync(folder, { recursive: true, force: true }),
  };
}

function run(binary: string, texts: readonly (string | Uint8Array)[], tokens: boolean): Promise<readonly Verdict[]> {
  return new Promise((resolve, reject) => {
    const child = execFile(binary, { maxBuffer: 1 << 30 }, (error, stdout) => {
      if (error !== null) return reject(error);
      resolve(
        stdout
          .split("\n")
          .filter((line) => line !== "")
          .map((line): Verdict => JSON.parse(line)),
      );
    });
    child.stdin?.end(
      texts.map((text) => `${JSON.stringify({ text: Buffer.from(text).toString("base64"), tokens })}\n`).join(""),
    );
  });
}
