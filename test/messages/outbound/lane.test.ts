import { describe, expect, it } from "vitest";
import { Lane } from "#src/messages/outbound/lane.js";
import { gate } from "./scene.js";

describe("a lane", () => {
  it("should begin nothing before all that was put earlier has settled", async () => {
    const held = gate();
    const order: number[] = [];
    const lane = new Lane();
    lane.put(async () => {
      await held.opened;
      order.push(1);
    });
    lane.put(async () => void order.push(2));
    held.open();
    await lane.idle();
    expect(order).toEqual([1, 2]);
  });

  it("should go on behind work that fails", async () => {
    const order: number[] = [];
    const lane = new Lane();
    lane.put(() => Promise.reject(new Error("boom")));
    lane.put(async () => void order.push(2));
    await lane.idle();
    expect(order).toEqual([2]);
  });
});
