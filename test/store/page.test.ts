import { describe, expect, it } from "vitest";
import { pagesOf } from "#src/store/page.js";

describe("pages of a store that reads synchronously", () => {
  it("should be all there are, each behind the last element of the one before", async () => {
    const pages: (readonly number[])[] = [];
    const read = (from: number) => [from, from + 1].filter((each) => each < 5);
    for await (const page of pagesOf(0, read, (last) => last + 1)) pages.push(page);
    expect(pages).toEqual([[0, 1], [2, 3], [4]]);
  });

  it("should let the event loop turn in between, so that a signal is heard", async () => {
    let turned = false;
    setImmediate(() => {
      turned = true;
    });
    const seen: boolean[] = [];
    const read = (from: number) => (from < 3 ? [from] : []);
    for await (const _ of pagesOf(0, read, (last) => last + 1)) seen.push(turned);
    expect(seen).toEqual([false, true, true]);
  });
});
