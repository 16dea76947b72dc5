import { describe, expect, it } from "vitest";
import { Output, type OutputOptions, type OutputStream } from "#src/cli/output.js";
import { createRedactor } from "#src/payload/redaction.js";

type StreamOptions = { readonly isTTY?: boolean; readonly columns?: number; readonly fails?: string };

class KeptStream implements OutputStream {
  text = "";
  readonly isTTY: boolean;
  readonly columns: number;
  readonly #failure: (Error & { code?: string }) | null;

  constructor({ isTTY = false, columns = 40, fails }: StreamOptions = {}) {
    this.columns = columns;
    this.isTTY = isTTY;
    this.#failure = fails === undefined ? null : Object.assign(new Error(`write ${fails}`), { code: fails });
  }

  write(text: string, done: (error?: Error | null) => void): boolean {
    if (this.#failure === null) this.text += text;
    queueMicrotask(() => done(this.#failure));
    return true;
  }

  on(): void {}
}

function outputOn(
  streams: { readonly stdout?: KeptStream; readonly stderr?: KeptStream },
  options: Partial<OutputOptions> = {},
) {
  const { stdout = new KeptStream(), stderr = new KeptStream() } = streams;
  return { out: new Output({ stdout, stderr, env: {}, ...options }), stdout, stderr };
}

const ESC = "\u001b[";

describe("Output", () => {
  it("should print results to stdout and notes to stderr", async () => {
    const { out, stdout, stderr } = outputOn({});
    expect(await out.print("result")).toBe(true);
    out.note("note");
    await out.flush();
    expect(stdout.text).toBe("result\n");
    expect(stderr.text).toBe("note\n");
  });

  it("should keep notes, warnings and progress back with --quiet, but no error", async () => {
    const { out, stderr } = outputOn({ stderr: new KeptStream({ isTTY: true }) }, { quiet: true, color: false });
    out.note("note");
    out.warn("warning");
    out.progress("working");
    out.error("error");
    await out.flush();
    expect(stderr.text).toBe("error\n");
  });

  it("should show details only with --verbose", async () => {
    const brief = outputOn({});
    brief.out.detail("detail");
    const verbose = outputOn({}, { verbose: true });
    verbose.out.detail("detail");
    expect([brief.stderr.text, verbose.stderr.text]).toEqual(["", "detail\n"]);
  });

  it("should show progress on a terminal, and take it away before the next line", async () => {
    const { out, stderr } = outputOn({ stderr: new KeptStream({ isTTY: true }) }, { color: false });
    out.progress("working");
    await out.print("result");
    expect(stderr.text).toBe(`\r${ESC}2Kworking\r${ESC}2K`);
  });

  it("should cut progress to the terminal's width", async () => {
    const { out, stderr } = outputOn({ stderr: new KeptStream({ isTTY: true }) }, { color: false });
    out.progress("x".repeat(100));
    expect(stderr.text).toBe(`\r${ESC}2K${"x".repeat(39)}`);
  });

  it("should take a terminal that tells no width for one of 80 columns", () => {
    const { out, stderr } = outputOn({ stderr: new KeptStream({ isTTY: true, columns: 0 }) }, { color: false });
    out.progress("x".repeat(100));
    expect(stderr.text).toBe(`\r${ESC}2K${"x".repeat(79)}`);
  });

  it("should show no progress where nobody watches", () => {
    const { out, stderr } = outputOn({});
    out.progress("working");
    expect(stderr.text).toBe("");
  });

  it("should say that the reader has gone, and write no more", async () => {
    const { out } = outputOn({ stdout: new KeptStream({ fails: "EPIPE" }) });
    expect(await out.print("result")).toBe(false);
    expect(await out.print("result")).toBe(false);
  });

  it("should fail where stdout cannot take the result", async () => {
    const { out } = outputOn({ stdout: new KeptStream({ fails: "ENOSPC" }) });
    await expect(out.print("result")).rejects.toMatchObject({ code: "HL_OUTPUT" });
  });

  it("should survive a stderr that is gone", async () => {
    const { out } = outputOn({ stderr: new KeptStream({ fails: "EPIPE" }) });
    out.error("nobody hears");
    await expect(out.flush()).resolves.toBeUndefined();
  });

  it("should redact what it is told to", () => {
    const { out } = outputOn({});
    expect(out.redacted("s3cr3t-value")).toBe("s3cr3t-value");
    out.redactWith(createRedactor({ patterns: [], secrets: ["s3cr3t-value"] }));
    expect(out.redacted("it is s3cr3t-value!")).toBe("it is [redacted]!");
  });

  it.each([
    ["on a terminal", true, {}, true, true],
    ["on a pipe", false, {}, true, false],
    ["on a pipe with FORCE_COLOR", false, { FORCE_COLOR: "1" }, true, false],
    ["with NO_COLOR", true, { NO_COLOR: "1" }, true, false],
    ["with an empty NO_COLOR", true, { NO_COLOR: "" }, true, true],
    ["with FORCE_COLOR=0", true, { FORCE_COLOR: "0" }, true, false],
    ["on a dumb terminal", true, { TERM: "dumb" }, true, false],
    ["with --no-color", true, {}, false, false],
  ] as const)("should decide about colours %s", (_, isTTY, env, color, coloured) => {
    const { out } = outputOn({ stdout: new KeptStream({ isTTY }) }, { env, color });
    expect(out.style.red("x")).toBe(coloured ? `${ESC}31mx${ESC}39m` : "x");
  });
});
