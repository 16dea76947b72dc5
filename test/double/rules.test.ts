import { describe, expect, it } from "vitest";
import { decide } from "../support/eventstoredb/rules.mjs";
import type { Expected, StreamState } from "../support/eventstoredb/types.js";

/** A stream with these events, one letter each. */
function stream(ids: string, rest: Partial<StreamState> = {}): StreamState {
  return {
    last: ids.length - 1,
    tombstoned: false,
    softDeleted: false,
    hasMetadata: false,
    idAt: (revision) => ids[revision],
    revisionOf: (id) => (ids.includes(id) ? ids.lastIndexOf(id) : undefined),
    ...rest,
  };
}

const decision = (state: StreamState, expected: Expected, ids: string) => decide(state, expected, [...ids]).kind;

describe("an append at an exact revision", () => {
  it("should be written where the stream ends", () => {
    expect(decide(stream("ab"), 1, ["c"])).toEqual({ kind: "write", undelete: false });
    expect(decision(stream(""), "none", "a")).toBe("write");
  });

  it("should be a wrong version ahead of the end", () => {
    expect(decision(stream("ab"), 2, "c")).toBe("wrong-version");
    expect(decision(stream(""), 0, "a")).toBe("wrong-version");
  });

  it("should be repeated when every id is there, position by position", () => {
    expect(decide(stream("abcd"), "none", ["a", "b"])).toEqual({ kind: "repeat", last: 1 });
    expect(decide(stream("abcd"), 1, ["c", "d"])).toEqual({ kind: "repeat", last: 3 });
  });

  it("should be a wrong version when the first id differs", () => {
    expect(decision(stream("abcd"), 1, "xd")).toBe("wrong-version");
    expect(decision(stream("a"), "none", "x")).toBe("wrong-version");
  });

  it("should be a wrong version when it overlaps in part", () => {
    expect(decision(stream("abc"), "none", "abx")).toBe("wrong-version");
    expect(decision(stream("abc"), 0, "bcd")).toBe("wrong-version");
  });

  it("should not look for ids at other positions", () => {
    expect(decision(stream("abc"), 0, "c")).toBe("wrong-version");
    expect(decision(stream("abc"), 2, "a")).toBe("write");
  });

  it("should say of no events only whether the version is right", () => {
    expect(decision(stream("ab"), 0, "")).toBe("wrong-version");
    expect(decision(stream("ab"), 1, "")).toBe("write");
  });
});

describe("an append at any revision", () => {
  it("should be repeated when the server remembers every id in this stream, wherever", () => {
    expect(decide(stream("abc"), "any", ["a", "c"])).toEqual({ kind: "repeat", last: 2 });
    expect(decide(stream("abc"), "exists", ["b"])).toEqual({ kind: "repeat", last: 1 });
  });

  it("should be written when the first id is new here, and refused when a later one is", () => {
    expect(decision(stream("abc"), "any", "xa")).toBe("write");
    expect(decision(stream("abc"), "any", "ax")).toBe("wrong-version");
  });
});

describe("an append to a stream that must exist", () => {
  it("should want an event or metadata", () => {
    expect(decision(stream(""), "exists", "a")).toBe("wrong-version");
    expect(decision(stream("", { hasMetadata: true }), "exists", "a")).toBe("write");
    expect(decision(stream("a"), "exists", "b")).toBe("write");
  });
});

describe("an append to a deleted stream", () => {
  it("should be refused for ever after a tombstone", () => {
    for (const expected of ["any", "none", "exists", 1] as const) {
      expect(decision(stream("ab", { tombstoned: true }), expected, "c")).toBe("deleted");
    }
  });

  it("should bring a soft-deleted stream back, at none, any or its last revision", () => {
    const deleted = stream("ab", { softDeleted: true });
    for (const expected of ["any", "none", 1] as const) {
      expect(decide(deleted, expected, ["c"])).toEqual({ kind: "write", undelete: true });
    }
    expect(decision(deleted, 0, "c")).toBe("wrong-version");
    expect(decision(deleted, "exists", "c")).toBe("deleted");
  });

  it("should still repeat what was there before a soft delete", () => {
    expect(decision(stream("ab", { softDeleted: true }), "none", "ab")).toBe("repeat");
  });
});
