/** Scripts for the oracle of message hooks, at random. */
import fc from "fast-check";
import type { Composition, Conduct, Fields, Meaning, Role, Script } from "./oracle-handlers.js";

export const COMPOSITIONS: readonly Composition[] = ["claim", "rewrite", "waterfall", "notify"];

const MAX_MS = 8;
const NOTHING: Meaning = { says: "nothing" };

/** Few different values, so that ties and repetitions are frequent; the empty text is one of them. */
const texts = fc.constantFrom("", "a", "b");
const fields: fc.Arbitrary<Fields> = fc.record(
  { content: texts, cancelReason: texts, metadata: fc.record({ m: fc.nat({ max: 2 }) }) },
  { requiredKeys: [] },
);

function meanings(composition: Composition): fc.Arbitrary<Meaning> {
  switch (composition) {
    case "claim":
      return fc.oneof(
        { weight: 3, arbitrary: fc.constant(NOTHING) },
        { weight: 1, arbitrary: texts.map((text): Meaning => ({ says: "claim", result: text })) },
      );
    case "rewrite":
      return fc
        .record({ fields, cancel: seldom })
        .map(
          (said): Meaning =>
            said.cancel || Object.keys(said.fields).length > 0 ? { says: "define", ...said } : NOTHING,
        );
    case "waterfall":
      return fc.oneof(
        { weight: 2, arbitrary: fc.constant(NOTHING) },
        { weight: 4, arbitrary: texts.map((payload): Meaning => ({ says: "replace", payload })) },
        { weight: 1, arbitrary: fc.constant<Meaning>({ says: "cancel" }) },
        { weight: 1, arbitrary: texts.map((reason): Meaning => ({ says: "cancel", reason })) },
      );
    case "notify":
      return fc.constant(NOTHING);
  }
}

const seldom = fc.nat({ max: 7 }).map((n) => n === 0);

export function conducts(means: fc.Arbitrary<Meaning>): fc.Arbitrary<Conduct> {
  const afterMs = fc.nat({ max: MAX_MS + 2 });
  return fc.oneof(
    { weight: 10, arbitrary: fc.record({ does: fc.constant("answer" as const), afterMs: fc.nat({ max: 3 }), means }) },
    { weight: 2, arbitrary: fc.record({ does: fc.constant("answer" as const), afterMs, means }) },
    { weight: 2, arbitrary: fc.record({ does: fc.constant("throw" as const), afterMs }) },
    { weight: 1, arbitrary: fc.constant({ does: "hang" } as const) },
  );
}

/** Who hangs always has a deadline: nobody waits for ever. */
export function timeoutsFor({ does }: Conduct): fc.Arbitrary<number | null> {
  const some = fc.integer({ min: 1, max: MAX_MS });
  return does === "hang" ? some : fc.option(some, { freq: 3 });
}

export const cancellations = fc
  .option(fc.nat({ max: 2 * MAX_MS }), { freq: 1, nil: null })
  .chain((at) => fc.nat({ max: 3 }).map((n) => (n === 0 ? at : null)));

export function scriptsOf(composition: Composition): fc.Arbitrary<Script> {
  const role = conducts(meanings(composition)).chain((conduct) =>
    fc.record({ conduct: fc.constant(conduct), timeoutMs: timeoutsFor(conduct), skipped: seldom, id: fc.constant("") }),
  );
  const blockable = composition === "rewrite" || composition === "waterfall";
  return fc.noBias(
    fc
      .record({
        composition: fc.constant(composition),
        roles: fc.array(role, { maxLength: 6, size: "max" }),
        blocks: blockable ? fc.nat({ max: 2 }).map((n) => n === 0) : fc.constant(false),
        cancelAtMs: cancellations,
      })
      .map((script) => ({ ...script, roles: script.roles.map((one, at): Role => ({ ...one, id: `h${at}` })) })),
  );
}

export const runScripts: fc.Arbitrary<Script> = fc.constantFrom(...COMPOSITIONS).chain(scriptsOf);
