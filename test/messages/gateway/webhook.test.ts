/** Over real HTTP: what comes from the network is anybody's. */
import { once } from "node:events";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { describe, expect, it } from "vitest";
import { httpScene } from "./http-scene.js";
import { gate, hang } from "./scene.js";

const JSON_TYPE = { "content-type": "application/json" };
const MIB = 1024 * 1024;

describe("a webhook", () => {
  it("should take a message, and say what became of it", async () => {
    const { post, server } = await httpScene();
    expect(await post({ at: 1_700_000_000_000 })).toMatchObject({
      status: 200,
      body: { end: "answered", replies: [{ kind: "final", status: "sent" }] },
    });
    expect(server.texts).toEqual(["You said: hello"]);
  });

  it.each([
    ["no JSON at all", "hello"],
    ["JSON that is cut off", '{"id":"m-1"'],
    ["nothing", ""],
    ["bytes that are no UTF-8", Buffer.from([0x7b, 0xff, 0x7d])],
    ["a list", "[]"],
    ["null", "null"],
    ["brackets without end", "[".repeat(500_000)],
    ["no id", '{"from":"ada","conversation":"c","text":"hi"}'],
    ["an id that is too long", JSON.stringify({ id: "x".repeat(201), from: "ada", conversation: "c", text: "hi" })],
    ["an id that is a number", '{"id":1,"from":"ada","conversation":"c","text":"hi"}'],
    ["a text that is none", '{"id":"m","from":"ada","conversation":"c","text":{"toString":1}}'],
    ["a time that is none", '{"id":"m","from":"ada","conversation":"c","text":"hi","at":1.5}'],
    ["a field too many", '{"id":"m","from":"ada","conversation":"c","text":"hi","__proto__":{"id":"x"}}'],
  ])("should refuse a body of %s, and tell nobody", async (_, body) => {
    const { send, completions, server } = await httpScene();
    expect(await send({ headers: JSON_TYPE, body })).toMatchObject({
      status: 400,
      body: { error: expect.any(String) },
    });
    expect([completions, server.requests]).toEqual([[], 0]);
  });

  it.each([
    ["none", {}],
    ["text", { "content-type": "text/plain" }],
    ["a form's", { "content-type": "application/x-www-form-urlencoded" }],
    ["JSON in another encoding", { "content-type": "application/json; charset=utf-16" }],
    ["compressed JSON", { ...JSON_TYPE, "content-encoding": "gzip" }],
  ])("should refuse a content type that is %s", async (_, headers) => {
    const { send } = await httpScene();
    const body = Buffer.from('{"id":"m","from":"ada","conversation":"c","text":"hi"}');
    expect((await send({ headers, body })).status).toBe(415);
  });

  it("should take JSON that says it is in UTF-8", async () => {
    const { send } = await httpScene();
    const body = '{"id":"m","from":"ada","conversation":"c","text":"hi"}';
    const headers = { "content-type": 'Application/JSON ; charset="UTF-8"' };
    expect((await send({ headers, body })).status).toBe(200);
  });

  it("should have messages posted, and nowhere else", async () => {
    const { send } = await httpScene();
    expect((await send({ headers: JSON_TYPE, body: "{}" }, "/elsewhere")).status).toBe(404);
    expect((await send({ method: "PUT", headers: JSON_TYPE, body: "{}" })).status).toBe(405);
  });

  const WAYS: readonly (readonly [string, (body: string) => RequestInit])[] = [
    ["says its size", (body) => ({ body })],
    ["comes in chunks", (body) => ({ body: new Blob([body]).stream(), duplex: "half" })],
  ];
  describe.each(WAYS)("given a body of 10 MiB that %s", (_, initOf) => {
    const body = JSON.stringify({ id: "m", from: "ada", conversation: "c", text: "x".repeat(10 * MIB) });

    it("should refuse it, and go on", async () => {
      const { send, post } = await httpScene();
      expect(await send({ headers: JSON_TYPE, ...initOf(body) })).toMatchObject({
        status: 413,
        body: { error: expect.stringContaining(`${MIB} bytes`) },
      });
      expect((await post()).status).toBe(200);
    });

    it("should take it whole where that is allowed", async () => {
      const { send, server } = await httpScene({
        maxBytes: 11 * MIB,
        agent: ({ message }) => ({ text: `${message.body?.length}` }),
        on: { witness: (api) => void api.on("before_dispatch", () => null) },
      });
      expect((await send({ headers: JSON_TYPE, ...initOf(body) })).status).toBe(200);
      expect(server.texts).toEqual([`${10 * MIB}`]);
    });
  });

  it("should not wait for a body that never comes, and not fall over one that breaks off", async () => {
    const { webhook, post } = await httpScene({ bodyTimeoutMs: 100 });
    const { port } = new URL(webhook);
    const head = "POST /messages HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{";
    const slow = connect(Number(port), "127.0.0.1");
    slow.write(head);
    expect(await text(slow)).toContain("408 Request Timeout");
    const broken = connect(Number(port), "127.0.0.1");
    broken.write(head);
    await once(broken, "connect");
    broken.destroy();
    expect((await post()).status).toBe(200);
  });

  it("should have what nothing became of posted again", async () => {
    const begun = gate();
    const agent = () => {
      begun.open();
      return hang();
    };
    const { post, gateway } = await httpScene({ agent, closeTimeoutMs: 20 });
    const turn = post();
    await begun.opened;
    await gateway.close();
    expect(await turn).toMatchObject({ status: 503, retryAfter: "1", body: { end: "aborted" } });
    expect(await post()).toMatchObject({ status: 503, body: { end: "closed" } });
  });

  it("should say that a fault is its own, and no more", async () => {
    const fault = new Error("a secret of ours");
    const { post, faults } = await httpScene({
      sessionKeyOf: () => {
        throw fault;
      },
    });
    expect(await post()).toEqual({ status: 500, retryAfter: null, body: { error: "the gateway failed" } });
    expect(faults).toEqual([fault]);
  });
});
