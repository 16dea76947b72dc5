import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parseServerUrl, placeOf } from "#src/store/eventstoredb/address.js";
import { authority, issue, writePems } from "../support/certificates.js";
import { temporaryFolder } from "../support/store-fixtures.js";

describe("the URL of a server", () => {
  it.each([
    ["esdb://localhost", [{ address: "localhost", port: 2113 }], false],
    ["esdb://localhost:2114/", [{ address: "localhost", port: 2114 }], false],
    ["kurrentdb://db.example.org:1", [{ address: "db.example.org", port: 1 }], false],
    ["esdb+discover://cluster", [{ address: "cluster", port: 2113 }], true],
    ["kurrentdb+discover://cluster:9", [{ address: "cluster", port: 9 }], true],
    ["esdb://[::1]:2113", [{ address: "[::1]", port: 2113 }], false],
    [
      "esdb://a:1,b:2",
      [
        { address: "a", port: 1 },
        { address: "b", port: 2 },
      ],
      true,
    ],
  ])("should read the hosts of %s", (url, hosts, discover) => {
    expect(parseServerUrl(url)).toMatchObject({
      hosts,
      discover,
      credentials: null,
      tls: { verify: true },
    });
  });

  it("should read credentials and never show them", () => {
    const address = parseServerUrl("esdb://ad%40min:p%3Ass%2Fw%40rd@host:2113?tls=true");
    expect(address.credentials).toEqual({ username: "ad@min", password: "p:ss/w@rd" });
    expect(address.shown).toBe("esdb://host:2113?tls=true");
    expect(placeOf(address)).toBe("host:2113");
    expect(placeOf(parseServerUrl("esdb://u:p@a,b,c"))).toBe("a:2113 and 2 more");
  });

  it("should read every setting, in any case", () => {
    const url =
      "esdb://h?TLS=false&connectionName=my%20kernel&maxDiscoverAttempts=3&discoveryinterval=50&gossipTimeout=2" +
      "&nodePreference=ReadOnlyReplica&keepAliveInterval=-1&keepAliveTimeout=5000&defaultDeadline=2500&throwOnAppendFailure=true";
    expect(parseServerUrl(url)).toMatchObject({
      tls: null,
      connectionName: "my kernel",
      maxDiscoverAttempts: 3,
      discoveryInterval: 50,
      gossipTimeout: 2,
      nodePreference: "read_only_replica",
      keepAliveInterval: -1,
      keepAliveTimeout: 5000,
      defaultDeadline: 2500,
    });
    expect(parseServerUrl("esdb://h?tlsVerifyCert=false").tls).toEqual({ verify: false });
  });

  it.each([
    "esdb:host",
    "esdb:///",
    "esdb://",
    "esdb://host:0",
    "esdb://host:65536",
    "esdb://host:port",
    "esdb://a,,b",
    "esdb://ho st",
    "esdb://host/path",
    "esdb://secret@host",
    "esdb://user:@host",
    "esdb://user:%zz-secret@host",
    "esdb://user:pass?secret@host",
    "esdb://secret:1234?word@host",
    "esdb://user:p@ss?secret@host",
    "esdb://host?&",
    "esdb://host?tls",
    "esdb://host?tls=",
    "esdb://host?tls=perhaps",
    "esdb://host?tls=true&TLS=false",
    "esdb://host?unheardOf=secret",
    "esdb://host?__proto__=1",
    "esdb://host?defaultDeadline=0",
    "esdb://host?defaultDeadline=1e3",
    "esdb://host?nodePreference=any",
    "esdb://host?throwOnAppendFailure=false",
    "esdb://host?tls=false&tlsCAFile=ca.pem",
    "esdb://host?tlsCAFile=/nowhere/at/all",
    "esdb://host?userCertFile=/nowhere/at/all",
    `esdb://${Array(65).fill("a").join(",")}`,
  ])("should refuse %s, and say why without repeating a secret", (url) => {
    expect(() => parseServerUrl(url)).toThrow(
      expect.objectContaining({
        code: "HL_STORE_URL",
        hint: expect.any(String),
        message: expect.not.stringContaining("secret"),
      }),
    );
  });

  describe("with certificates", () => {
    let folder: ReturnType<typeof temporaryFolder>;
    let paths: { readonly ca: string; readonly cert: string; readonly key: string };

    beforeAll(() => {
      folder = temporaryFolder();
      const issuer = authority("test");
      paths = writePems(folder.path, { ca: issuer.pem, ...issue(issuer, "localhost") });
    });
    afterAll(() => folder.remove());

    it("should read them where it is opened", () => {
      const url = `esdb://h?tlsCAFile=${encodeURIComponent(paths.ca)}&userCertFile=${paths.cert}&userKeyFile=${paths.key}`;
      const { tls } = parseServerUrl(url);
      expect(Buffer.from(tls?.ca ?? []).toString()).toContain("BEGIN CERTIFICATE");
      expect(Buffer.from(tls?.identity?.cert ?? []).toString()).toContain("BEGIN CERTIFICATE");
    });

    it("should refuse a certificate without its key, and what is no PEM", () => {
      const noPem = join(folder.path, "no.pem");
      writeFileSync(noPem, "-----BEGIN CERTIFICATE-----\nsecret\n-----END CERTIFICATE-----\n");
      for (const query of [`userCertFile=${paths.cert}`, `userCertFile=${noPem}&userKeyFile=${paths.key}`]) {
        expect(() => parseServerUrl(`esdb://h?${query}`)).toThrow(expect.objectContaining({ code: "HL_STORE_URL" }));
      }
    });
  });
});
