import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { LineSplitter, lineText, MAX_LINE_BYTES } from "#src/subscribers/plugin/lines.js";
import { readLogLine } from "#src/subscribers/plugin/log-line.js";
import { PluginLog } from "#src/subscribers/plugin/plugin-log.js";
import { faultOf, Ground, type Logged, specOf } from "../../support/plugin-lives.js";
import { VirtualClock } from "../../support/virtual-clock.js";

function lined(chunks: readonly (string | Buffer)[]): string[] {
  const lines: string[] = [];
  const splitter = new LineSplitter((line, cut) => lines.push(lineText(line, cut, (text) => text)));
  for (const chunk of chunks) splitter.push(Buffer.from(chunk));
  splitter.end();
  return lines;
}

describe("LineSplitter", () => {
  it("should find the same lines however they are cut into chunks", () => {
    const text = fc
      .array(fc.constantFrom("a", "bc", "\n", "é", "🙂"), { maxLength: 40 })
      .map((parts) => parts.join(""));
    fc.assert(
      fc.property(text, fc.array(fc.nat(80)), (given, cuts) => {
        const bytes = Buffer.from(given);
        const places = [0, ...cuts.map((cut) => Math.min(cut, bytes.length)).sort((a, b) => a - b), bytes.length];
        const chunks = places.slice(1).map((end, i) => bytes.subarray(places[i], end));
        const expected = given.split("\n");
        if (expected.at(-1) === "") expected.pop();
        expect(lined(chunks)).toEqual(expected);
      }),
    );
  });

  it("should keep of a long line what fits, between characters, and say how much more there was", () => {
    const [line = "", next] = lined([`${"é".repeat(MAX_LINE_BYTES)}`, "x\r\n", "next\r\n"]);
    expect(line).toBe(`${"é".repeat(MAX_LINE_BYTES / 2)}… (${MAX_LINE_BYTES + 2} bytes more)`);
    expect(next).toBe("next");
    expect(lined([`a${"é".repeat(MAX_LINE_BYTES)}\n`])[0]).not.toContain("\ufffd");
  });

  it("should pass over all but the last lines of a chunk that it skims", () => {
    const lines: string[] = [];
    const splitter = new LineSplitter((line) => lines.push(line.toString()));
    splitter.push(Buffer.from("begun "));
    const chunk = Buffer.from("one\ntwo\nthree\nfour\nfive");
    expect(splitter.skim(chunk, 6)).toBe("begun one\ntwo\n".length);
    splitter.push(Buffer.from(" six\n"));
    expect(lines).toEqual(["three", "four", "five six"]);
    expect(splitter.skim(Buffer.from("short\n"), 100)).toBe(0);
    expect(lines).toContain("short");
  });
});

describe("readLogLine", () => {
  it.each([
    ["plain", "debug", "plain"],
    ["[INFO] up", "info", "up"],
    ["[TRACE] x", "debug", "x"],
    ["[ERROR]x", "error", "x"],
    ["2026-11-30T10:00:00.123Z [WARN]  net: slow: ms=3", "warn", "net: slow: ms=3"],
    ["2026/11/30 10:00:00 [ERR] old", "error", "old"],
    ["[NOPE] x", "debug", "[NOPE] x"],
    [
      '{"@level":"warn","@message":"low","@module":"disk","@timestamp":"t","free":3,"path":"/a b","ok":true}',
      "warn",
      'disk: low free=3 path="/a b" ok=true',
    ],
    ['{"@level":"trace","@message":"m"}', "debug", "m"],
    ['{"@level":"loud","@message":"m"}', "info", "m"],
    ['{"@level":"info","@message":"m","__proto__":"p","constructor":1}', "info", "m __proto__=p constructor=1"],
    ['{"@level":"info"}', "debug", '{"@level":"info"}'],
    ['{"@level":"info","@message":7}', "debug", '{"@level":"info","@message":7}'],
    ['{"msg":"of another library"}', "debug", '{"msg":"of another library"}'],
    ["{ no json", "debug", "{ no json"],
  ])("should read %s", (line, level, message) => {
    expect(readLogLine(line)).toMatchObject({ level, message });
  });

  it("should not name a logger that is named as its provider", () => {
    const line = '{"@level":"info","@message":"up","@module":"gate"}';
    expect([readLogLine(line, "gate").message, readLogLine(line, "other").message]).toEqual(["up", "gate: up"]);
  });

  it("should not be overflowed by depth", () => {
    const deep = `{"@level":"info","@message":"m","x":${"[".repeat(30_000)}${"]".repeat(30_000)}}`;
    expect(readLogLine(deep).message.length).toBeGreaterThan(0);
  });
});

describe("PluginLog", () => {
  function logged() {
    const lines: Logged[] = [];
    const clock = new VirtualClock();
    const log = new PluginLog(
      "peer",
      (line) => lines.push(line),
      clock,
      (text) => text,
    );
    return { lines, clock, log, say: (text: string) => log.stream("stderr").push(Buffer.from(text)) };
  }
  const errors = (lines: readonly Logged[]) =>
    lines.filter(({ level }) => level === "error").map((line) => line.message);

  it("should let a bounded amount through each second, and count the rest in one line", async () => {
    const { lines, clock, log } = logged();
    const stream = log.stream("stderr");
    const chunk = Buffer.from(`${"x".repeat(1023)}\n`.repeat(64));
    for (let round = 0; round < 160; round++) stream.push(chunk);
    const passed = lines.reduce((bytes, { message }) => bytes + message.length + 1, 0);
    expect(passed).toBeGreaterThan(800 * 1024);
    expect(passed).toBeLessThanOrEqual(1024 * 1024);
    await clock.run();
    const left = 160 * chunk.length - passed;
    expect(lines.at(-1)).toEqual({
      level: "warn",
      provider: "peer",
      message: `${left} bytes of output left out: more came within a second than is logged`,
    });
    const before = lines.length;
    stream.push(chunk);
    expect(lines.length).toBe(before + 64);
    await clock.run();
    expect(lines.length).toBe(before + 64);
  });

  it("should bound the number of lines too", () => {
    const { lines, say } = logged();
    say("y\n".repeat(100_000));
    expect(lines.length).toBeLessThan(10_000);
  });

  it("should log what the Go runtime says when it gives up as errors, once", () => {
    const { lines, log, say } = logged();
    say("[INFO] up\npanic: boom\n\ngoroutine 1 [running]:\nmain.main()\n\t/src/main.go:3 +0x1\n");
    const trace = ["panic: boom", "", "goroutine 1 [running]:", "main.main()", "\t/src/main.go:3 +0x1"];
    expect(errors(lines)).toEqual(trace);
    log.explain("exited with code 2");
    expect(errors(lines)).toEqual(trace);
    expect(log.lastWords).toBe("panic: boom");
  });

  it("should explain an end with the last lines, also those that a flood has swallowed", () => {
    const { lines, log, say } = logged();
    say("noise\n".repeat(40_000));
    say("panic: out of noise\n");
    log.explain("exited with code 2");
    expect(errors(lines)).toHaveLength(64);
    expect(errors(lines).at(-1)).toBe("before it exited with code 2: panic: out of noise");
  });

  it.each([
    ["one\ntwo\n", "one two"],
    [
      '{"@level":"error","@message":"no key","file":"k.pem"}\n{"@level":"info","@message":"bye"}\n',
      "no key file=k.pem",
    ],
    ["", null],
    ["a\nb\nc\nd\ne\n", "e"],
    [
      "/x.mjs:3\nthrow new Error()\n^\n\nTypeError: x is not a function\n    at f (x.mjs:3)\n\nNode.js v20\n",
      "TypeError: x is not a function",
    ],
    ["[INFO] labelled\n", null],
  ])("should have last words for %j", (text, words) => {
    const { log, say } = logged();
    say(text);
    expect(log.lastWords).toBe(words);
  });

  it("should swallow 100 MB without growing or holding up the plugin", async () => {
    const ground = new Ground();
    const path = ground.script(`yes "$(printf '%0120d' 7)" | head -c 100000000 >&2; echo done; exit 1`);
    let bytes = 0;
    const since = performance.now();
    const before = process.memoryUsage().rss;
    const log: string[] = [];
    const fault = await faultOf(
      specOf(path, {
        log: ({ message }) => {
          bytes += message.length;
          if (message.includes("left out")) log.push(message);
        },
      }),
    );
    const seconds = (performance.now() - since) / 1_000;
    expect(fault).toContain('due: "done"; it exited with code 1');
    expect(seconds).toBeLessThan(10);
    expect(bytes).toBeLessThan((seconds + 1) * 1024 * 1024);
    expect(log.length).toBeGreaterThan(0);
    expect(process.memoryUsage().rss - before).toBeLessThan(100 * 1024 * 1024);
  });
});
