import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { encodeCertificate } from "#src/goplugin/certificate.js";
import { formatHandshake, MAX_HANDSHAKE_BYTES, parseHandshake } from "#src/goplugin/handshake.js";
import { createIdentity } from "#src/goplugin/identity.js";

const { der } = await createIdentity();
const LEAF = encodeCertificate(der);

function faultOf(line: string): string {
  const parsed = parseHandshake(line);
  if (parsed.ok) throw new Error(`accepted: ${line}`);
  return parsed.fault;
}

describe("parseHandshake", () => {
  it.each([
    ["1|1|unix|/tmp/p|grpc", null],
    ["1|1|unix|/tmp/p|grpc|", null],
    [`1|1|unix|/tmp/p|grpc|${LEAF}`, der],
    [`1|1|unix|/tmp/p|grpc|${LEAF}|false`, der],
    ["1|1|unix|/tmp/p|grpc||", null],
  ])("should read %s", (line, certificate) => {
    const handshake = { coreVersion: 1, appVersion: 1, network: "unix", address: "/tmp/p", certificate };
    expect(parseHandshake(line)).toEqual({ ok: true, handshake });
  });

  it.each(["127.0.0.1:4000", "127.1.2.3:65535", "[::1]:1", "localhost:80"])("should take %s", (address) => {
    expect(parseHandshake(`1|7|tcp|${address}|grpc`)).toMatchObject({
      ok: true,
      handshake: { appVersion: 7, network: "tcp", address },
    });
  });

  it.each([
    ["", "a stray line"],
    ["hello", "a stray line"],
    ["Error: no such | thing | here", "a stray line"],
    [" 1|1|unix|/tmp/p|grpc", "a stray line"],
    ["2|1|unix|/tmp/p|grpc", 'core protocol version "2", and 1 is spoken'],
    ["01|1|unix|/tmp/p|grpc", 'core protocol version "01"'],
    ["1|x|unix|/tmp/p|grpc", 'protocol version "x", which is no number'],
    ["1|-1|unix|/tmp/p|grpc", "which is no number"],
    ["1|1|unix|/tmp/p|netrpc", "net/rpc"],
    ["1|1|unix|/tmp/p", "net/rpc"],
    ["1|1|unix", "3 fields"],
    ["1|1|unix|/tmp/p|grpc|||", "8 fields"],
    ["1|1|unix|/tmp/p|http", 'protocol "http"'],
    ["1|1|udp|127.0.0.1:1|grpc", 'network "udp"'],
    ["1|1|unix|tmp/p|grpc", "no absolute path"],
    ["1|1|unix|/tmp/\0p|grpc", "no absolute path"],
    [`1|1|unix|/${"é".repeat(54)}|grpc`, "a socket path of 109 bytes, and 107"],
    ["1|1|tcp|10.0.0.1:4000|grpc", "no host:port of the loopback"],
    ["1|1|tcp|127.0.0.999:4000|grpc", "no host:port of the loopback"],
    ["1|1|tcp|127.0.0.1:65536|grpc", "no host:port of the loopback"],
    ["1|1|tcp|127.0.0.1|grpc", "no host:port of the loopback"],
    [`1|1|unix|/tmp/p|grpc|${LEAF}=`, "no certificate"],
    ["1|1|unix|/tmp/p|grpc|AAAA", "no certificate"],
    ["1|1|unix|/tmp/p|grpc||true", "asks for multiplexing"],
    ["1|1|unix|/tmp/p|grpc||yes", 'multiplex flag "yes"'],
    ["1|1|unix|/tmp/p|grpc\r", 'protocol "grpc\\u{d}"'],
    [`1|1|unix|/tmp/p|grpc|${"A".repeat(MAX_HANDSHAKE_BYTES)}`, "longer than 65536 bytes"],
  ])("should refuse %j", (line, fault) => {
    expect(faultOf(line)).toContain(fault);
  });

  it("should quote what it saw without letting it act on a terminal", () => {
    const fault = faultOf("\u001b[2J\u202eevil\u0085\u200b|");
    expect(fault).toContain('"\\u{1b}[2J\\u{202e}evil\\u{85}\\u{200b}|"');
  });

  it("should answer anything with a short line, and never throw", () => {
    const field = fc.oneof(
      fc.constantFrom("1", "unix", "tcp", "/p", "grpc", "", "false", LEAF),
      fc.string({ unit: "binary" }),
    );
    const line = fc.oneof(
      fc.array(field, { maxLength: 9 }).map((fields) => fields.join("|")),
      fc.string({ unit: "binary" }),
    );
    fc.assert(
      fc.property(line, (text) => {
        const parsed = parseHandshake(text);
        if (parsed.ok) return;
        expect(parsed.fault).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u);
        expect(parsed.fault.length).toBeLessThan(512);
      }),
    );
  });
});

describe("formatHandshake", () => {
  it("should write what is read back", () => {
    const handshake = fc.record({
      coreVersion: fc.constant(1),
      appVersion: fc.nat(),
      network: fc.constant("unix" as const),
      address: fc.string({ unit: "grapheme-ascii", maxLength: 100 }).map((text) => `/${text.replaceAll("|", "")}`),
      certificate: fc.constantFrom(null, der),
    });
    fc.assert(
      fc.property(handshake, (given) => {
        expect(parseHandshake(formatHandshake(given))).toEqual({ ok: true, handshake: given });
      }),
    );
  });

  it("should leave the sixth field in place without a certificate, as Go does", () => {
    const line = formatHandshake({ coreVersion: 1, appVersion: 1, network: "unix", address: "/p", certificate: null });
    expect(line).toBe("1|1|unix|/p|grpc|");
  });

  it("should refuse what cannot be read back", () => {
    const handshake = { coreVersion: 1, appVersion: 1, network: "unix", address: "/a|b", certificate: null } as const;
    expect(() => formatHandshake(handshake)).toThrow(RangeError);
  });
});
