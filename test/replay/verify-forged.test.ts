/** Under a chain that was made for it, a record still has to be what this version would have written, and to replay. */
import { describe, expect, it } from "vitest";
import { type Divergence, Verifier } from "#src/replay/verify.js";
import type { StreamName } from "#src/store/port.js";
import { eventIds } from "#src/store/record/event-id.js";
import { allow, chain, decided, invoked, policy, started } from "../support/given.js";
import { ulidOf } from "../support/ledger.js";
import { type LedgerRows, storeOf } from "../support/ledgers.js";
import { forged, type Texts } from "../support/ledgers-forged.js";
import { ledgerOf } from "../support/ledgers-random.js";

const LOG = [started(chain("veto:guard")), invoked(0), allow(0), decided("allow", "kernel:default")];

async function rows(): Promise<LedgerRows> {
  return ledgerOf({ n: 1, log: LOG, session: "s" });
}

async function diverged(ledger: LedgerRows): Promise<Divergence | null> {
  const store = storeOf(ledger);
  const stream = (await store.readStream(`hookdispatch-${ulidOf(1)}`))!;
  return (await new Verifier(store).verify(stream)).diverged;
}

function at(revision: number, told: (texts: Texts) => Partial<Texts>) {
  return (texts: Texts, n: number): Texts => (n === revision ? { ...texts, ...told(texts) } : texts);
}

describe("a forged chain", () => {
  it("should be one that the format's own words make", async () => {
    const legal = await rows();
    expect(forged(legal, (texts) => texts)).toEqual(legal);
  });

  it("should not be seen where only what describes was changed: that is for signed checkpoints", async () => {
    const later = at(2, ({ metadata }) => ({ metadata: metadata.replace(/"offsetNs":\d+/, '"offsetNs":7') }));
    expect(await diverged(forged(await rows(), later))).toBeNull();
  });

  it("should not help a decision that does not replay", async () => {
    const denied = at(3, ({ data }) => ({ data: data.replace('"allow"', '"deny"') }));
    expect(await diverged(forged(await rows(), denied))).toMatchObject({ revision: 3, kind: "decision" });
  });

  it("should not help a payload of another size than its reference says", async () => {
    for (const change of [1, -1]) {
      const resized = at(0, ({ data }) => ({
        data: data.replace(/"size":(\d+)/, (_, size) => `"size":${Number(size) + change}`),
      }));
      expect(await diverged(forged(await rows(), resized))).toMatchObject({ revision: 0, kind: "payload" });
    }
  });

  it("should not help verdicts of policy that are not those on the plan", async () => {
    const log = [
      started(chain("policy"), { point: "plan-ready" }),
      invoked(0),
      policy("ask", "allow"),
      decided("allow", "kernel:default", "stamped"),
    ];
    const legal = await ledgerOf({ n: 1, log });
    expect(await diverged(legal)).toBeNull();
    const allowed = at(2, ({ data }) => ({ data: data.replace('"decision":"ask"', '"decision":"allow"') }));
    expect(await diverged(forged(legal, allowed))).toMatchObject({ revision: 2, kind: "decision" });
  });

  it("should not help a dispatch that is not named by a ULID", async () => {
    const legal = await rows();
    for (const name of ["x", "", ulidOf(1).toLowerCase(), `${ulidOf(1)}0`]) {
      const stream: StreamName = `hookdispatch-${name}`;
      const idOf = eventIds(name);
      const renamed = forged(
        {
          events: legal.events.map((event) => ({ ...event, stream, id: idOf(event.revision) })),
          heads: legal.heads.map((head) => ({ ...head, stream })),
          blobs: legal.blobs,
        },
        at(0, ({ data }) => ({ data: data.replace(ulidOf(1), name) })),
      );
      const store = storeOf(renamed);
      const verification = await new Verifier(store).verify((await store.readStream(stream))!);
      expect(verification.diverged).toMatchObject({ dispatchId: name, revision: 0, kind: "illegal_event" });
    }
  });

  it("should not help a start that names another dispatch", async () => {
    const another = at(0, ({ data }) => ({ data: data.replace(ulidOf(1), ulidOf(2)) }));
    expect(await diverged(forged(await rows(), another))).toMatchObject({ revision: 0, kind: "illegal_event" });
  });

  it("should not help a start that names another configuration", async () => {
    const another = at(0, ({ data }) => ({ data: data.replace(/("configDigest":"sha256:)./, "$10") }));
    const { revision, kind } = (await diverged(forged(await rows(), another)))!;
    expect({ revision, kind }).toEqual({ revision: 0, kind: "payload" });
  });

  const spellings: Readonly<Record<string, (text: string) => string>> = {
    "white space": (text) => text.replace('":', '": '),
    "white space at the end": (text) => text.replace(/\}$/, " }"),
    "another order of members": (text) =>
      JSON.stringify(Object.fromEntries(Object.entries<unknown>(JSON.parse(text)).reverse())),
    "a letter as an escape": (text) =>
      text.replace(/"([a-z])/, (_, c: string) => `"\\u00${c.charCodeAt(0).toString(16)}`),
    "a member twice": (text) => text.replace(/^\{("[^"]+":)/, "{$10,$1"),
    "a number with a fraction of zero": (text) => text.replace(/:(\d+)([,}])/, ":$1.0$2"),
    "a number with an exponent": (text) => text.replace(/:(\d+)([,}])/, ":$1e0$2"),
    "a member __proto__": (text) => text.replace("{", '{"__proto__":{},'),
    "an unknown member": (text) => text.replace(/\}$/, ',"zzz":1}'),
  };
  for (const column of ["data", "metadata"] as const) {
    for (const [what, respelt] of Object.entries(spellings)) {
      for (const covers of ["what is stored", "what it was"] as const) {
        it(`should not help another spelling of the ${column}, covering ${covers}: ${what}`, async () => {
          const legal = await rows();
          const told = forged(
            legal,
            at(1, (texts) => ({ [column]: respelt(texts[column]) })),
            covers,
          );
          expect(told.events[1]).not.toEqual(legal.events[1]);
          const found = await diverged(told);
          expect(found).toMatchObject({ dispatchId: ulidOf(1), revision: 1 });
          expect(["chain", "undecodable"]).toContain(found?.kind);
        });
      }
    }
  }
});
