import { describe, expect, it } from "vitest";
import { unreachable } from "#src/store/eventstoredb/unreachable.js";

describe("the reason why a server cannot be reached", () => {
  it.each([
    ["No connection established. Last error: Error: connect ECONNREFUSED 127.0.0.1:2114.", "connection refused"],
    ["Name resolution failed for target dns:nosuchhost.invalid:2113", "its name cannot be resolved"],
    ["Last error: Error: connect EHOSTUNREACH 10.0.0.1:2113", "no route to it"],
    ["error:0A00010B:SSL routines:ssl3_get_record:wrong version number:record.c:350", "it does not speak TLS"],
    [
      "Error [ERR_TLS_CERT_ALTNAME_INVALID]: Hostname/IP does not match certificate's altnames",
      "its certificate is for another name",
    ],
    ["Last error: Error: certificate has expired", "its certificate has expired"],
    ["SSL alert number 116: tlsv13 alert certificate required", "it does not take the client's certificate"],
    [
      "Last error: Error: self-signed certificate in certificate chain",
      "its certificate is not of an authority that is trusted here: see tlsCAFile",
    ],
    [
      "No connection established. Last error: Failed to connect (2026-11-30T15:06:39.436Z).",
      "it hangs up: it may speak TLS only",
    ],
  ])("should be found in %j", (text, reason) => {
    expect(unreachable(text)).toBe(reason);
  });

  it("should never be a text of somebody else's", () => {
    expect(unreachable("\u001b[31muser:password\u001b[0m")).toBe("unavailable");
  });
});
