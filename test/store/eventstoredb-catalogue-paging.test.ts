import { randomUUID } from "node:crypto";
import fc from "fast-check";
import { expect, it } from "vitest";
import { Catalogue } from "#src/store/eventstoredb/catalogue/catalogue.js";
import { Enlister } from "#src/store/eventstoredb/catalogue/enlist.js";
import type { StreamFilter, StreamName } from "#src/store/port.js";
import { ulid } from "#src/store/ulid.js";
import { AdapterTime } from "../support/adapter-time.js";
import { MemoryServerLog } from "../support/server-log.js";

const HOUR = 3_600_000;

/** Crowded in places, and far apart: ids that a caller chose carry any time. */
const time = fc.oneof(
  fc.nat(2_000).map((ms) => 1_767_225_600_000 + ms),
  fc.nat(40).map((hours) => 1_767_225_600_000 + hours * HOUR),
  fc.maxSafeNat().map((ms) => ms % 2 ** 48),
);
const id = fc.tuple(time, fc.uint8Array({ minLength: 10, maxLength: 10 })).map(([ms, random]) => ulid(ms, random));
const session = fc.constantFrom("a", "b", null);
const dispatches = fc.uniqueArray(fc.record({ id, session }), { maxLength: 60, selector: ({ id }) => id });

const foreign = fc.record({
  type: fc.constantFrom("prefix", "dispatch", "note"),
  data: fc.oneof(
    fc.jsonValue({ maxDepth: 2 }),
    fc.record({ prefix: fc.string() }),
    fc.record({ dispatch: fc.string(), session: fc.jsonValue() }),
    fc.constant({ prefix: "__proto" }),
  ),
});

it("should name what a plain filter over all dispatches names, in any page sizes, beside entries of others", async () => {
  await fc.assert(
    fc.asyncProperty(
      dispatches,
      fc.array(foreign, { maxLength: 20 }),
      fc.record({
        order: fc.constantFrom("oldest" as const, "newest" as const),
        session: fc.constantFrom("a", "b", "c", null, undefined),
        cut: fc.integer({ min: 0, max: 26 }),
        after: fc.option(fc.nat(59), { nil: undefined }),
        max: fc.integer({ min: 1, max: 20 }),
        restarts: fc.boolean(),
      }),
      async (all, foreigners, { order, session, cut, after, max, restarts }) => {
        const log = new MemoryServerLog();
        const enlister = new Enlister(log, new AdapterTime());
        for (const each of all) await enlister.enlist(`hookdispatch-${each.id}`, each.session).written;
        // Once more, as after a crash.
        for (const each of all.slice(0, 5)) await enlister.enlist(`hookdispatch-${each.id}`, each.session).written;
        for (const [n, { type, data }] of foreigners.entries()) {
          const stream = log.streams[n % log.streams.length];
          if (stream === undefined) continue;
          const content = { kind: "json" as const, data: Object(data), metadata: {} };
          await log.append(stream, "any", [{ id: randomUUID(), type, content }]);
        }
        const start = after === undefined ? undefined : all[after]?.id;
        const filter: StreamFilter = {
          order,
          ...(session === undefined ? {} : { session }),
          ...(cut === 0 ? {} : { prefix: (all[0]?.id ?? "").slice(0, cut) }),
          ...(start === undefined ? {} : { after: `hookdispatch-${start}` }),
        };
        const expected = all
          .filter((each) => session === undefined || each.session === session)
          .filter((each) => each.id.startsWith(filter.prefix ?? ""))
          .filter((each) => start === undefined || (order === "oldest" ? each.id > start : each.id < start))
          .map((each): StreamName => `hookdispatch-${each.id}`)
          .sort();
        if (order === "newest") expected.reverse();

        const names: StreamName[] = [];
        let catalogue = new Catalogue(log);
        for (let next = filter.after ?? null, first = true; first || next !== null; first = false) {
          const page = await catalogue.page(next === null ? filter : { ...filter, after: next }, max);
          expect(page.names.length).toBeLessThanOrEqual(max);
          names.push(...page.names);
          next = page.next;
          if (restarts) catalogue = new Catalogue(log);
        }
        // Entries of others that look like ours are taken for ours, and nobody is misled: there is no such stream.
        const known = new Set(all.map((each) => `hookdispatch-${each.id}`));
        expect(names.filter((name) => known.has(name))).toEqual(expected);
        expect(log.countOf("readAll")).toBe(0);
      },
    ),
    { numRuns: 200 },
  );
});
