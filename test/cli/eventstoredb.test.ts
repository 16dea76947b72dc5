/** Commands on a server, from a process of their own. Against a double. */
import { tmpdir } from "node:os";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { authority, issue } from "../support/certificates.js";
import { run } from "../support/cli.js";
import { type Double, startDouble } from "../support/eventstoredb/double.mjs";

describe("commands on a server (against a double)", { timeout: 30_000 }, () => {
  let double: Double;
  let url: string;
  beforeAll(async () => {
    double = await startDouble({
      tls: issue(authority("test"), "localhost"),
      credentials: { username: "kernel", password: "s3cret" },
    });
    url = `esdb://kernel:s3cret@127.0.0.1:${double.port}?tls=true&tlsVerifyCert=false&defaultDeadline=1000`;
  });
  afterAll(() => double.stop());

  it("should say nothing that is not theirs, also where TLS meets an IP address", async () => {
    const ran = await run(["--store", url, "verify", "--all", "--jobs", "2"], { cwd: tmpdir() });
    expect(ran).toMatchObject({ code: 0, stderr: "" });
    expect(ran.stdout).not.toContain("s3cret");
  });

  it("should say that nobody answers, once and without the password", async () => {
    const { code, stdout, stderr } = await run(["--store", url.replace(/:\d+\?/, ":1?"), "list"], { cwd: tmpdir() });
    expect({ code, stdout }).toEqual({ code: 6, stdout: "" });
    expect(stderr).toContain("HL_STORE_UNAVAILABLE");
    expect(stderr).not.toContain("s3cret");
  });
});
