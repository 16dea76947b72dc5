import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { encodeCertificate } from "#src/goplugin/certificate.js";
import { createIdentity } from "#src/goplugin/identity.js";
import { startPlugin } from "#src/subscribers/plugin/start.js";
import { faultOf, Ground, isAlive, PEER, specOf, startPeer, until } from "../../support/plugin-lives.js";

const LEAF = encodeCertificate((await createIdentity()).der);
const STAY = "exec sleep 1000";

describe("a file that cannot be started", () => {
  it("should be named: missing, a folder, not executable, no program", async () => {
    const ground = new Ground();
    const plain = ground.file("plain", "#!/bin/sh\n", 0o600);
    const text = ground.file("text", "echo hello\n", 0o700);
    const orphan = ground.file("orphan", "#!/no/such/interpreter\n", 0o700);
    expect(await faultOf(specOf(`${ground.folder}/none`))).toBe(`there is no file "${ground.folder}/none"`);
    expect(await faultOf(specOf(`${plain}/none`))).toBe(`there is no file "${plain}/none"`);
    expect(await faultOf(specOf(ground.folder))).toBe(`"${ground.folder}" is not a file`);
    expect(await faultOf(specOf(text))).toBe(`"${text}" is neither a program nor a script that begins with #!`);
    expect(await faultOf(specOf(orphan))).toContain("it exited with code 127 before its handshake line; on stderr: ");
    // The superuser may do anything but start such a file.
    expect(await faultOf(specOf(plain))).toBe(`"${plain}" is not executable`);
    expect(ground.folders()).toEqual([]);
  });

  it("should be told from what the system refuses", async () => {
    const ground = new Ground();
    const large = specOf(ground.script(STAY), { environment: { LARGE: "x".repeat(4 * 1024 * 1024) } });
    expect(await faultOf(large)).toBe("it cannot be started: its arguments and its environment are too large (E2BIG)");
    expect(ground.folders()).toEqual([]);
  });
});

describe("a plugin that does not come up", () => {
  it.each([
    [
      "exits before its line",
      "echo 'Error: no key' >&2; exit 3",
      ['it exited with code 3 before its handshake line; on stderr: "Error: no key"'],
    ],
    ["exits without a word", "exit 0", ["it exited with code 0 before its handshake line"]],
    ["is killed", "kill -9 $$", ["it was killed by SIGKILL before its handshake line"]],
    [
      "explains itself on stderr",
      "printf 'This is a plugin.\\nRun its host.\\n' >&2; exit 1",
      ['on stderr: "This is a plugin. Run its host."'],
    ],
    [
      "writes a stray line",
      `echo 'listening on 80'; ${STAY}`,
      ['a stray line where the handshake line is due: "listening on 80"'],
    ],
    ["writes a stray line and ends", "echo oops; exit 4", ['due: "oops"; it exited with code 4']],
    ["writes what acts on a terminal", `printf '\\033[2J\\n'; ${STAY}`, ['due: "\\u{1b}[2J"']],
    [
      "writes a long line",
      `head -c 70000 /dev/zero | tr '\\0' x; ${STAY}`,
      ['its first line is longer than 65536 bytes: "xxx'],
    ],
    ["writes junk", `printf '\\000\\377\\376\\n'; ${STAY}`, ['due: "\\u{0}\ufffd\ufffd"']],
    [
      "does not end its line",
      "printf '1|1|unix|/tmp/p|grpc'",
      ['its handshake line has no end: "1|1|unix|/tmp/p|grpc"; it exited with code 0'],
    ],
    ["speaks another core version", `echo '2|1|unix|/tmp/p|grpc'; ${STAY}`, ['core protocol version "2"']],
    [
      "speaks another version",
      `echo '1|6|unix|/tmp/p|grpc'; ${STAY}`,
      ["it speaks protocol version 6, and 1 is asked for"],
    ],
    ["speaks net/rpc", `echo '1|1|unix|/tmp/p|netrpc'; ${STAY}`, ["net/rpc plugin"]],
    ["listens on plain TCP", `echo '1|1|tcp|127.0.0.1:4000|grpc'; ${STAY}`, ["it listens on plain TCP"]],
    [
      "answers with a certificate unasked",
      `echo '1|1|unix|/tmp/p|grpc|${LEAF}'; ${STAY}`,
      ["with a certificate although auto_mtls is off"],
    ],
    [
      "listens nowhere",
      `echo "1|1|unix|$TMPDIR/none|grpc"; ${STAY}`,
      ["its health check fails: UNAVAILABLE", "ENOENT"],
    ],
  ])("should be told of that, and gone: it %s", async (_, body, texts) => {
    const ground = new Ground();
    const fault = await faultOf(specOf(ground.script(body)));
    for (const text of texts) expect(fault).toContain(text);
    expect(fault).not.toMatch(/[\p{Cc}\p{Cf}]/u);
    expect(fault.length).toBeLessThanOrEqual(1_024);
    expect(ground.folders()).toEqual([]);
    expect(ground.processes()).toEqual([]);
  });

  it("should be given up after its time, with what there is of a line", async () => {
    const ground = new Ground();
    const startTimeoutMs = 120;
    const silent = await faultOf(specOf(ground.script(STAY), { startTimeoutMs }));
    expect(silent).toBe("it wrote no handshake line within 120 ms");
    const halting = await faultOf(specOf(ground.script(`printf '1|1|un'; ${STAY}`), { startTimeoutMs }));
    expect(halting).toBe('it wrote no handshake line within 120 ms, only "1|1|un" on stdout');
    expect(ground.processes()).toEqual([]);
    expect(ground.folders()).toEqual([]);
  });

  it("should be given up when the caller says so, before and after it runs", async () => {
    const ground = new Ground();
    const controller = new AbortController();
    const path = ground.script(`echo $$ > ${ground.folder}/pid; ${STAY}`);
    const starting = faultOf(specOf(path), { signal: controller.signal });
    await until(() => ground.has("pid"));
    controller.abort();
    expect(await starting).toBe("the start was given up");
    expect(await faultOf(specOf(path), { signal: controller.signal })).toBe("the start was given up");
    expect(ground.folders()).toEqual([]);
    expect(isAlive(Number(readFileSync(`${ground.folder}/pid`, "utf8")))).toBe(false);
  });

  it("should take what it started with it", async () => {
    const ground = new Ground();
    const grandchild = `sh -c "trap '' TERM; while :; do sleep 1; done" ${ground.folder} & echo stray; ${STAY}`;
    await faultOf(specOf(ground.script(grandchild)));
    expect(ground.processes()).toEqual([]);
  });

  it("should be told of an unhealthy peer", async () => {
    const ground = new Ground();
    const health = (order: string, startTimeoutMs = 10_000) =>
      faultOf(specOf(PEER, { args: [JSON.stringify({ health: order, folder: ground.folder })], startTimeoutMs }));
    const faults = await Promise.all([health("not-serving"), health("none"), health("exit"), health("hang", 1_500)]);
    expect(faults[0]).toBe("it is unhealthy: its status is notServing");
    expect(faults[1]).toBe("it does not implement the health check of a gRPC plugin");
    expect(faults[2]).toContain("exited with code 7");
    expect(faults[3]).toMatch(/^its health check (?:was not answered within 1500 ms|fails: DEADLINE_EXCEEDED)/);
    expect(ground.processes()).toEqual([]);
    expect(ground.folders()).toEqual([]);
  });
});

describe("AutoMTLS", () => {
  const peer = (tls: object, autoMtls: "auto" | "require" | "off") =>
    specOf(PEER, { args: [JSON.stringify(tls)], autoMtls });

  it("should be refused where the peer does without, lies about it, or is another one", async () => {
    new Ground();
    const faults = await Promise.all([
      faultOf(peer({ tls: "none" }, "require")),
      faultOf(peer({ tls: "other" }, "auto")),
      faultOf(peer({ tls: "announced-only" }, "auto")),
      faultOf(peer({ tls: "none", network: "tcp" }, "auto")),
    ]);
    expect(faults[0]).toContain("it answers without TLS, which auto_mtls requires");
    expect(faults[1]).toContain("it has another certificate than its handshake names");
    expect(faults[2]).toContain("it does not speak the TLS that its handshake names");
    expect(faults[3]).toContain("it listens on plain TCP");
  });

  it.each([
    ["required", {}, "require"],
    ["offered and taken", {}, "auto"],
    ["offered and declined", { tls: "none" }, "auto"],
    ["required over TCP", { network: "tcp" }, "require"],
  ] as const)("should hold where it is %s", async (_, orders, autoMtls) => {
    new Ground();
    const { life } = await startPeer({ ...orders, prints: [["stdout", "printed\n"]] }, { autoMtls });
    expect(await life.describe(5_000)).toBeNull();
    await life.close();
    expect(life.end).toBe("exited with code 0");
  });
});

describe("a plugin's surroundings", () => {
  it("should be what is listed and nothing else", async () => {
    const ground = new Ground();
    process.env["HKL_CANARY"] = "never seen";
    const environment = {
      PATH: process.env["PATH"] ?? "",
      LISTED: "a b",
      PLUGIN_CLIENT_CERT: "forged",
      TMPDIR: "/forged",
    };
    const path = ground.script(`env > ${ground.folder}/env; ls -ld "$TMPDIR" > ${ground.folder}/ls; exit 1`);
    await faultOf(specOf(path, { environment, cookie: { key: "COOKIE", value: "c" }, protocolVersion: 5 }));
    delete process.env["HKL_CANARY"];
    const seen = new Map(
      readFileSync(`${ground.folder}/env`, "utf8")
        .trim()
        .split("\n")
        .map((line) => [line.slice(0, line.indexOf("=")), line.slice(line.indexOf("=") + 1)]),
    );
    // The script's own shell says where it is.
    for (const own of ["PWD", "OLDPWD", "SHLVL", "_"]) seen.delete(own);
    const folder = seen.get("TMPDIR");
    expect(Object.fromEntries(seen)).toEqual({
      PATH: environment.PATH,
      LISTED: "a b",
      COOKIE: "c",
      PLUGIN_PROTOCOL_VERSIONS: "5",
      PLUGIN_UNIX_SOCKET_DIR: folder,
      TMPDIR: folder,
    });
    expect(folder).toMatch(new RegExp(`^${ground.folder}/hkl-`));
    expect(readFileSync(`${ground.folder}/ls`, "utf8")).toMatch(/^drwx------/);
    expect(ground.folders()).toEqual([]);
  });

  it("should hand over path and arguments as they are", async () => {
    const ground = new Ground();
    const path = ground.file("my $(touch bad) 'plugin'", '#!/bin/sh\nprintf "%s\\n" "$@" >&2; exit 1\n', 0o700);
    const args = ["$HOME", "a b", "", "`id`", "-n"];
    const log: string[] = [];
    const started = await startPlugin(specOf(path, { args, log: ({ message }) => log.push(message) }));
    expect(started.ok).toBe(false);
    expect(log).toEqual(args);
  });
});
