import { execFileSync } from "node:child_process";
import { mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { FileDigest } from "#src/subscribers/plugin/file-digest.js";

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "hookledger-digest-"));
});
afterAll(() => rmSync(folder, { recursive: true }));

describe("FileDigest", () => {
  it("should be what sha256sum prints", async () => {
    const path = join(folder, "plain");
    writeFileSync(path, "#!/bin/sh\n");
    const printed = execFileSync("sha256sum", [path], { encoding: "utf8" }).slice(0, 64);
    expect(await new FileDigest(path).now()).toBe(`sha256:${printed}`);
  });

  it("should be another one once the file is another one, also of the same size and name", async () => {
    const path = join(folder, "swapped");
    writeFileSync(path, "one");
    const digest = new FileDigest(path);
    const first = await digest.now();
    expect(await digest.holds()).toBe(true);
    writeFileSync(`${path}.new`, "two");
    renameSync(`${path}.new`, path);
    expect(await digest.holds()).toBe(false);
    expect(await digest.now()).not.toBe(first);
    expect(await digest.holds()).toBe(true);
  });

  it("should throw where there is no file", async () => {
    await expect(new FileDigest(join(folder, "missing")).now()).rejects.toMatchObject({ code: "ENOENT" });
  });
});
