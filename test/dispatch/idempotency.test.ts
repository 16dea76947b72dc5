import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import type { HookPayloadInput } from "#src/payload/messages.js";
import { payloadFromView } from "#src/payload/payload.js";
import { openMemoryStore } from "#src/store/memory.js";
import { openStore } from "#src/store/open.js";
import type { EventStore, RecordedEvent } from "#src/store/port.js";
import { FaultyStore } from "../support/faulty-store.js";
import { ack, allow, deny, Later, type Part, Rig } from "../support/kernels.js";
import { INPUTS } from "../support/subscriber-calls.js";
import { settled } from "../support/virtual-clock.js";

const ID = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
const OTHER = { preToolCall: { call: { id: "c-2", toolName: "write" } } } as const satisfies HookPayloadInput;
const veto: Part = { mode: "veto", does: allow };

/** The same ledger as another process sees it. */
class ElsewhereStore extends FaultyStore {
  override get writer(): string {
    return "01BX5ZZKBKACTAV9WEVGEMMVRZ";
  }
}

/** The deny of its one subscriber written over. */
function allowing(event: RecordedEvent): RecordedEvent {
  const data = event.data.replace('"deny"', '"allow"').replace('"decidedBy":"veto"', '"decidedBy":"kernel:default"');
  return { ...event, data };
}

describe("a dispatch under the id of an earlier one", () => {
  it("should give the recorded result and ask nobody", async () => {
    const store = openMemoryStore();
    const first = new Rig({ store, chain: [{ mode: "observe", does: ack }, veto] });
    const made = await first.dispatch({ id: ID, session: "s-1", turn: "t-1" });
    const second = new Rig({ store, chain: [{ mode: "veto", does: deny }] });
    const again = await second.dispatch({ id: ID });
    expect(second.calls).toHaveLength(0);
    expect({ ...again, durationMs: 0 }).toStrictEqual({ ...made, durationMs: 0 });
    expect(await first.recorded(ID)).toMatchObject({ diverged: null });
  });

  it.each([
    ["a deny", [{ mode: "veto", does: deny }], { decision: "deny", decidedBy: "veto", reason: "not today" }],
    [
      "an abort",
      [{ mode: "transform", does: { class: "failed", error: { category: "UNKNOWN", message: "no" } } }],
      { status: "aborted", abortCause: "hook_error", payload: null, reason: "UNKNOWN: no" },
    ],
  ] satisfies [string, Part[], object][])("should give %s again", async (_, chain, expected) => {
    const store = openMemoryStore();
    await new Rig({ store, chain }).dispatch({ id: ID });
    const again = await new Rig({ store, chain: [veto] }).dispatch({ id: ID });
    expect(again).toMatchObject(expected);
    expect(again.allowed).toBe(false);
  });

  it("should give the payload that a transform made", async () => {
    const store = openMemoryStore();
    const point = "pre-model-call";
    const { model } = INPUTS[point].preModelCall;
    const payload = payloadFromView({ preModelCall: { messages: [], model } });
    const made = await new Rig({
      store,
      point,
      chain: [{ mode: "transform", does: { class: "transformed", payload } }],
    }).dispatch({ id: ID });
    const again = await new Rig({ store, point }).dispatch({ id: ID });
    expect(again.payload?.bytes).toStrictEqual(made.payload?.bytes);
    expect(again.payload?.view).toStrictEqual(payload.view);
  });

  it("should take an id in lower case for the same", async () => {
    const rig = new Rig({ chain: [veto] });
    await rig.dispatch({ id: ID });
    await rig.dispatch({ id: ID.toLowerCase() });
    expect(rig.calls).toHaveLength(1);
  });

  it("should be refused with another payload, and record nothing", async () => {
    const rig = new Rig({ chain: [veto] });
    await rig.dispatch({ id: ID });
    await expect(rig.dispatch({ id: ID }, OTHER)).rejects.toMatchObject({ code: "HL_DISPATCH_CONFLICT" });
    expect((await rig.recorded(ID)).told).toHaveLength(4);
    expect(rig.calls).toHaveLength(1);
  });

  it("should be refused while the first is open, in this process and in another", async () => {
    const ledger = openMemoryStore();
    const answer = new Later<typeof allow>();
    const first = new Rig({ store: ledger, chain: [{ mode: "veto", does: () => answer.promise }] });
    const open = first.begin({ id: ID });
    await settled();
    const elsewhere = new Rig({ store: new ElsewhereStore(ledger), chain: [veto] });
    for (const rig of [first, new Rig({ store: ledger, chain: [veto] }), elsewhere]) {
      await expect(rig.begin({ id: ID })).rejects.toMatchObject({ code: "HL_DISPATCH_OPEN" });
    }
    await expect(elsewhere.begin({ id: ID }, OTHER)).rejects.toMatchObject({ code: "HL_DISPATCH_CONFLICT" });
    answer.resolve(allow);
    expect((await open).allowed).toBe(true);
    expect(await elsewhere.dispatch({ id: ID })).toMatchObject({ allowed: true, recorded: true });
    expect(elsewhere.calls).toHaveLength(0);
  });

  it("should be refused when its record does not replay", async () => {
    const store = openMemoryStore();
    await new Rig({ store, chain: [veto] }).dispatch({ id: ID });
    const corrupt = new FaultyStore(store);
    corrupt.readStream = async (stream) => {
      const found = await store.readStream(stream);
      return found && { ...found, events: found.events.slice(1) };
    };
    await expect(new Rig({ store: corrupt, chain: [veto] }).begin({ id: ID })).rejects.toMatchObject({
      code: "HL_STORE_CORRUPT",
    });
  });

  it("should allow nothing by a record that replays and does not verify", async () => {
    const store = openMemoryStore();
    await new Rig({ store, chain: [{ mode: "veto", does: { class: "deny" } }] }).dispatch({ id: ID });
    const forged = new FaultyStore(store);
    forged.readStream = async (stream) => {
      const found = await store.readStream(stream);
      return found && { ...found, events: found.events.map(allowing) };
    };
    const rig = new Rig({ store: forged, chain: [veto] });
    expect(await rig.recorded(ID)).toMatchObject({ verdict: { allowed: true }, diverged: { kind: "chain" } });
    await expect(rig.begin({ id: ID })).rejects.toMatchObject({ code: "HL_STORE_CORRUPT" });
    expect(rig.calls).toHaveLength(0);
  });

  it("should not begin where the ledger cannot be asked", async () => {
    const store = new FaultyStore(openMemoryStore());
    store.beforeRead = () => {
      throw new Error("unreadable");
    };
    const rig = new Rig({ store, chain: [veto] });
    await expect(rig.begin({ id: ID })).rejects.toThrow("unreadable");
    expect(rig.calls).toHaveLength(0);
    expect(store.requests).toHaveLength(0);
  });
});

describe("two that race for one id", () => {
  it("should call each subscriber once when they are of one kernel", async () => {
    const rig = new Rig({ chain: [veto] });
    const [first, second] = await Promise.allSettled([rig.begin({ id: ID }), rig.begin({ id: ID })]);
    expect(first).toMatchObject({ status: "fulfilled", value: { allowed: true } });
    expect(second).toMatchObject({ status: "rejected", reason: { code: "HL_DISPATCH_OPEN" } });
    expect(rig.calls).toHaveLength(1);
    expect((await rig.recorded(ID)).diverged).toBeNull();
    expect((await rig.dispatch({ id: ID })).allowed).toBe(true);
  });

  it("should call each subscriber once when two kernels share a store", async () => {
    const store = openMemoryStore();
    const [one, two] = [new Rig({ store, chain: [veto] }), new Rig({ store, chain: [veto] })];
    const both = await Promise.allSettled([one.begin({ id: ID }), two.begin({ id: ID })]);
    expect(both.map(({ status }) => status).toSorted()).toStrictEqual(["fulfilled", "rejected"]);
    expect(one.calls.length + two.calls.length).toBe(1);
    expect((await one.recorded(ID)).diverged).toBeNull();
  });

  it.each<[string, HookPayloadInput]>([
    ["the same payload, whose start is the same to the byte", INPUTS["pre-tool-call"]],
    ["another payload", OTHER],
  ])("should call nobody for the one that comes second from another process: %s", async (_, input) => {
    const ledger = openMemoryStore();
    const answer = new Later<typeof allow>();
    const first = new Rig({ store: ledger, chain: [{ mode: "veto", does: () => answer.promise }] });
    const slow = new ElsewhereStore(ledger);
    const gate = new Later<void>();
    let reads = 0;
    const found: { asked?: Promise<unknown> } = {};
    // It looked before the first began, and goes on when the first is open.
    const read = slow.readStream.bind(slow);
    slow.readStream = async (stream) => {
      const seen = await read(stream);
      if (++reads === 1) {
        found.asked = gate.promise;
        await gate.promise;
      }
      return seen;
    };
    const second = new Rig({ store: slow, chain: [veto] });
    const late = second.begin({ id: ID }, input);
    late.catch(() => {});
    await settled();
    const open = first.begin({ id: ID });
    await settled();
    gate.resolve();
    const code = input === OTHER ? "HL_DISPATCH_CONFLICT" : "HL_DISPATCH_OPEN";
    await expect(late).rejects.toMatchObject({ code });
    answer.resolve(allow);
    expect((await open).allowed).toBe(true);
    expect(second.calls).toHaveLength(0);
    const { told, diverged } = await first.recorded(ID);
    expect(told).toStrictEqual(["started", "invoked 0", "allow 0", "decided allow by kernel:default"]);
    expect(diverged).toBeNull();
  });

  describe("over one SQLite file", () => {
    const open: EventStore[] = [];
    let folder: string | undefined;
    afterEach(async () => {
      await Promise.all(open.splice(0).map((store) => store.close()));
      if (folder !== undefined) await rm(folder, { recursive: true });
    });

    it("should call each subscriber once", async () => {
      folder = await mkdtemp(join(tmpdir(), "hookledger-race-"));
      const url = `sqlite:${join(folder, "ledger.db")}`;
      open.push(await openStore(url, { mode: "write" }), await openStore(url, { mode: "write" }));
      const rigs = open.map((store) => new Rig({ store, chain: [veto] }));
      const ids = Array.from({ length: 40 }, (_, i) => `01ARZ3NDEKTSV4RRFFQ69G5F${String(i).padStart(2, "0")}`);
      const ended = await Promise.allSettled(ids.flatMap((id) => rigs.map((rig) => rig.begin({ id }))));
      for (const result of ended) {
        if (result.status === "rejected") expect(result.reason).toMatchObject({ code: "HL_DISPATCH_OPEN" });
        else expect(result.value).toMatchObject({ allowed: true, recorded: true });
      }
      expect(rigs.reduce((calls, rig) => calls + rig.calls.length, 0)).toBe(ids.length);
      for (const id of ids) expect((await rigs[0]!.recorded(id)).diverged).toBeNull();
    });
  });
});

describe("a redacted record", () => {
  const point = "pre-model-call";
  const { model } = INPUTS[point].preModelCall;
  const saying = (text: string): HookPayloadInput => ({
    preModelCall: { messages: [{ role: "ROLE_USER", content: [{ text: { text } }] }], model },
  });
  const redact = ["sk-[a-z0-9]+"];

  it("should prove a payload that nothing was taken out of", async () => {
    const rig = new Rig({ point, settings: { redact } });
    await rig.dispatch({ id: ID }, saying("hello"));
    expect(await rig.dispatch({ id: ID }, saying("hello"))).toMatchObject({ allowed: true });
  });

  it.each([
    ["the same", "sk-abc", "sk-abc"],
    ["another of equal redacted copy", "sk-abc", "sk-def"],
    ["the mark itself", "sk-abc", "[redacted]"],
    ["a secret where the mark stood", "[redacted]", "sk-abc"],
    ["the mark and the mark", "[redacted]", "[redacted]"],
  ])("should not be taken for a proof: %s", async (_, one, two) => {
    const rig = new Rig({ point, settings: { redact } });
    await rig.dispatch({ id: ID }, saying(one));
    await expect(rig.dispatch({ id: ID }, saying(two))).rejects.toMatchObject({ code: "HL_DISPATCH_CONFLICT" });
  });

  it("should not make a record of the mark, kept before anything was redacted, stand for a secret", async () => {
    const store = openMemoryStore();
    await new Rig({ store, point }).dispatch({ id: ID }, saying("[redacted]"));
    const later = new Rig({ store, point, settings: { redact } });
    await expect(later.dispatch({ id: ID }, saying("sk-abc"))).rejects.toMatchObject({ code: "HL_DISPATCH_CONFLICT" });
    expect(await later.dispatch({ id: ID }, saying("[redacted]"))).toMatchObject({ allowed: true });
  });

  it("should know an unredacted record's payload again when it would be redacted today", async () => {
    const store = openMemoryStore();
    await new Rig({ store, point }).dispatch({ id: ID }, saying("sk-abc"));
    const later = new Rig({ store, point, settings: { redact } });
    const again = await later.dispatch({ id: ID }, saying("sk-abc"));
    expect(again.payload?.view).toMatchObject({ messages: [{ content: [{ text: { text: "sk-abc" } }] }] });
  });

  it("should not hand out the redacted copy of what a transform made", async () => {
    const made = payloadFromView(saying("the key is sk-abc"));
    const rig = new Rig({
      point,
      settings: { redact },
      chain: [{ mode: "transform", does: { class: "transformed", payload: made } }],
    });
    expect((await rig.dispatch({ id: ID }, saying("hello"))).payload).toBe(made);
    await expect(rig.dispatch({ id: ID }, saying("hello"))).rejects.toMatchObject({ code: "HL_DISPATCH_CONFLICT" });
  });
});
