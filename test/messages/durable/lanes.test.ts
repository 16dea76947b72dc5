import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Lanes, type Place } from "#src/messages/durable/lanes.js";
import { orderedIds } from "#src/messages/durable/ordered-ids.js";
import { isUlid } from "#src/store/ulid.js";
import { quiet } from "./scene.js";

type Move = { readonly kind: "enter"; readonly lane: string } | { readonly kind: "leave"; readonly pick: number };

const move: fc.Arbitrary<Move> = fc.oneof(
  fc.record({ kind: fc.constant("enter" as const), lane: fc.constantFrom("a", "b") }),
  fc.record({ kind: fc.constant("leave" as const), pick: fc.nat(20) }),
);

describe("lanes", () => {
  it("should let in the first of each lane that has not left, whoever leaves when", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(move, { maxLength: 24 }), async (moves) => {
        const lanes = new Lanes();
        const model = new Map<string, { readonly place: Place; reached: boolean }[]>();
        for (const step of moves) {
          const everybody = [...model.values()].flat();
          if (step.kind === "enter") {
            const place = lanes.enter(step.lane);
            const entered = { place, reached: false };
            void place.reached.then(() => {
              entered.reached = true;
            });
            model.set(step.lane, [...(model.get(step.lane) ?? []), entered]);
          } else {
            const leaving = everybody[step.pick % Math.max(1, everybody.length)];
            leaving?.place.leave();
            for (const [lane, inside] of model)
              model.set(
                lane,
                inside.filter((one) => one !== leaving),
              );
          }
          await quiet();
          for (const inside of model.values()) {
            expect(inside.map(({ place }) => place.first)).toEqual(inside.map((_, n) => n === 0));
            expect(inside.map(({ reached }) => reached)).toEqual(inside.map((_, n) => n === 0));
          }
        }
      }),
      { numRuns: 60 },
    );
  });

  it("should tell those who wait that it stalls, also who comes later, and not who has left", async () => {
    const lanes = new Lanes();
    const told: string[] = [];
    const enter = (name: string): Place => {
      const place = lanes.enter("a");
      place.onStall(() => void told.push(name));
      return place;
    };
    const first = enter("first");
    const second = enter("second");
    const gone = enter("gone");
    gone.leave();
    second.stall(true);
    expect(told).toEqual([]);
    first.stall(true);
    first.stall(true);
    enter("later");
    expect(told).toEqual(["second", "later"]);
    first.stall(false);
    enter("after");
    expect(told).toEqual(["second", "later"]);
    first.stall(true);
    first.leave();
    await quiet();
    told.length = 0;
    enter("new");
    expect([second.first, told]).toEqual([true, []]);
  });
});

describe("ids of deliveries", () => {
  it("should ascend, also within a millisecond and when the clock is set back", () => {
    const walls = [5000, 5000, 5000, 4000, 4000, 5000, 5001, 5001, 9];
    const newId = orderedIds(() => walls.shift() ?? 6000);
    const ids = Array.from({ length: 12 }, newId);
    expect(ids.toSorted()).toEqual(ids);
    expect(new Set(ids).size).toBe(ids.length);
    expect(ids.every(isUlid)).toBe(true);
  });
});
