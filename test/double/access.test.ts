import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { authority, type Certificate, issue, writePems } from "../support/certificates.js";
import { aDouble, all, anEvent, clientOf, failure } from "./client.js";

const credentials = { username: "ledger", password: "changeit" };
let folder: string;
let ca: string;
let tls: Certificate;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "hookledger-double-"));
  const issuer = authority("double CA");
  tls = issue(issuer, "localhost");
  ca = writePems(folder, { ca: issuer.pem }).ca;
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const as = (url: string, user: string) => url.replace("://", `://${user}@`);

describe("a double that asks for credentials, over TLS", () => {
  it("should serve who has them", async () => {
    const double = await aDouble({ tls, credentials });
    const client = clientOf(as(double.url, "ledger:changeit"), `&tlsCAFile=${ca}`);
    await client.appendToStream("s-1", anEvent());
    expect(await all(client.readStream("s-1"))).toHaveLength(1);
  });

  it("should deny who has none, or the wrong ones", async () => {
    const double = await aDouble({ tls, credentials });
    for (const url of [double.url, as(double.url, "ledger:wrong")]) {
      const client = clientOf(url, `&tlsCAFile=${ca}`);
      expect(await failure(client.appendToStream("s-1", anEvent()))).toBe("access-denied");
      expect(await failure(all(client.readStream("s-1")))).toBe("access-denied");
      expect(await failure(client.deleteStream("s-1"))).toBe("access-denied");
    }
    expect(double.calls.eventsWritten).toBe(0);
  });

  it("should not be reached without its authority", async () => {
    const double = await aDouble({ tls, credentials });
    expect(await failure(clientOf(double.url).appendToStream("s-1", anEvent()))).toMatch(/UNAVAILABLE.*certificate/);
  });
});

describe("a double that allows some things only", () => {
  it("should deny a stream, and serve the next", async () => {
    const double = await aDouble({
      allow: ({ action, stream }) => action === "read" || stream.startsWith("mine-"),
    });
    const client = clientOf(double.url);
    expect(await failure(client.appendToStream("yours-1", anEvent()))).toBe("access-denied");
    await client.appendToStream("mine-1", anEvent());
    expect(await failure(all(client.readStream("yours-1")))).toBe("stream-not-found");
  });
});
