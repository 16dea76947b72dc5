import { describe, expect, it } from "vitest";
import { CSV_HEADER, csvCell, csvLine } from "#src/audit/format.js";
import { AUDIT_COLUMNS } from "#src/audit/record.js";
import { foreign } from "#src/cli/text.js";

const RECORD = {
  cursor: "YTEu",
  dispatchId: "01K0",
  revision: 3,
  type: "outcome",
  at: "2026-02-28T09:30:00.000Z",
  session: null,
  point: "pre-tool-call",
  subscriber: "log",
  mode: "observe",
  category: "UNKNOWN",
  message: 'it said "no", twice',
  decision: null,
  decidedBy: null,
  payloadDigest: null,
} as const;

describe("csv", () => {
  it("should name its columns in the order of the record", () => {
    expect(CSV_HEADER).toBe(
      "cursor,dispatchId,revision,type,at,session,point,subscriber,mode,category,message,decision,decidedBy,payloadDigest",
    );
    expect(Object.keys(RECORD)).toStrictEqual([...AUDIT_COLUMNS]);
  });

  it("should quote what needs quoting, and leave null empty", () => {
    expect(csvLine(RECORD, foreign)).toBe(
      'YTEu,01K0,3,outcome,2026-02-28T09:30:00.000Z,,pre-tool-call,log,observe,UNKNOWN,"it said ""no"", twice",,,',
    );
  });

  it.each([
    ["=1+1", "'=1+1"],
    ["+1", "'+1"],
    ["-1", "'-1"],
    ["@SUM(A1)", "'@SUM(A1)"],
    ["\tx", "'\tx"],
    ["\rx", '"\'\rx"'],
    ['=HYPERLINK("x")', '"\'=HYPERLINK(""x"")"'],
    ["a=b", "a=b"],
    ["a,b", '"a,b"'],
    ["a\nb", '"a\nb"'],
    ["", ""],
  ])("should write %j as %j", (text, cell) => {
    expect(csvCell(text)).toBe(cell);
  });
});
