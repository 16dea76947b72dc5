import { describe, expect, it } from "vitest";
import { chain } from "../support/given.js";
import { at, record } from "../support/ledger.js";
import { type Story, shown } from "../support/shown.js";
import {
  abandoned,
  deniedPlan,
  messages,
  open,
  rewrittenCall,
  startedWith,
  timedOut,
  withdrawn,
} from "../support/stories.js";

describe("show", () => {
  it("should tell a denied plan", async () => {
    expect(await shown(deniedPlan)).toMatchInlineSnapshot(`
      "denied  plan-ready  01K00000000000000000000001
        Denied by gate (veto): too many items
        when     2026-02-28T09:30:00.000Z, took 10 ms
        record   10 events, written by hookledger 0.1.0; verified
        session  session-1
        turn     turn-2

      Chain
                                    0 ─────────────────────────── 10 ms
        #0  kernel:policy  policy   ███                               │  500 µs  1 allow, 1 ask, 1 deny
        #1  log            observe    ████████████████████            │  5.3 ms  ack
        #2  metrics        observe    █████████████                   │  3.5 ms  failed: UNKNOWN: no suc…
        #3  gate           veto                          ██████████████  3.8 ms  DENY: too many items
        #4  second         veto                                       │          not called: denied by g…
        #5  after          observe                                    │          skipped: switched off
                                                  decided after 10 ms ▲

      Subscribers
        #0 kernel:policy  policy  ·  kernel:policy from host  ·  timeout 5 s
           saw      v1 42517215b3fc…, the input  at 100 µs
           said     1 allow, 1 ask, 1 deny  at 600 µs
           changed  v1 → v2
           ~ planReady.plan.items[0].decision  "PLAN_DECISION_PENDING" → "PLAN_DECISION_ALLOW"
           + planReady.plan.items[0].decidedBy  "policy:reads"
           ~ planReady.plan.items[1].decision  "PLAN_DECISION_PENDING" → "PLAN_DECISION_DENY"
           + planReady.plan.items[1].decidedBy  "policy:no-root"
           ~ planReady.plan.items[2].decision  "PLAN_DECISION_PENDING" → "PLAN_DECISION_ASK"
           + planReady.plan.items[2].decidedBy  "policy:default"
        #1 log  observe  ·  log from host  ·  timeout 1 s
           saw      v2 e1833aa362ca…, made by kernel:policy  at 700 µs
           said     ack  at 6 ms
           warning  carried a payload, which is ignored
        #2 metrics  observe  ·  metrics from host  ·  timeout 1 s
           saw   v2 e1833aa362ca…, same as #1  at 700 µs
           said  failed: UNKNOWN: no such series  at 4.2 ms
        #3 gate  veto  ·  gate from host  ·  timeout 5 s
           saw   v2 e1833aa362ca…, same as #2  at 6.1 ms
           said  DENY: too many items  at 9.9 ms
        #4 second  veto  ·  second from host  ·  timeout 1 s
           said  not called: denied by gate
        #5 after  observe  ·  after from host  ·  timeout 1 s
           said  skipped: switched off

      Plan
        i1  ALLOW  by policy:reads  read_file of fs (data_source, read_only): read the notes
           rule "reads" at agent.hcl:20:1: match kind = "data_source", action allow
           denied with the whole plan by gate
        i2  DENY  by policy:no-root  bash of shell (resource, critical): remove a folder
           rule "no-root" at agent.hcl:12:1: match tool_name = "bash", risk = "critical", action deny, reason "nobody runs this unseen"
        i3  ASK  by policy:default  write_file of fs (resource, moderate)
           no rule matched: resources are asked about
           denied with the whole plan by gate

      Payloads
        v1  the input         sha256:42517215b3fcfbea14869580acc2f335d60dfae225749b26736e55bd24f41f10  141 B
        v2  by kernel:policy  sha256:e1833aa362ca1dfed2ff6bcb338709f7a65bb774774492ad000651e5fe321675  187 B
           planReady.plan.turnId                     "t1"
           planReady.plan.items[0].id                "i1"
           planReady.plan.items[0].callId            "c1"
           planReady.plan.items[0].provider          "fs"
           planReady.plan.items[0].operationName     "read_file"
           planReady.plan.items[0].decision          "PLAN_DECISION_PENDING"
           planReady.plan.items[0].kind              "TOOL_KIND_DATA_SOURCE"
           planReady.plan.items[0].risk              "RISK_CLASS_READ_ONLY"
           planReady.plan.items[0].description       "read the notes"
           planReady.plan.items[0].producerCategory  "CATEGORY_TOOL"
           planReady.plan.items[1].id                "i2"
           planReady.plan.items[1].callId            "c2"
           planReady.plan.items[1].provider          "shell"
           planReady.plan.items[1].operationName     "bash"
           planReady.plan.items[1].decision          "PLAN_DECISION_PENDING"
           planReady.plan.items[1].kind              "TOOL_KIND_RESOURCE"
           … and 11 more; --verbose lists more, --json all"
    `);
  });

  it("should tell a rewritten call", async () => {
    expect(await shown(rewrittenCall)).toMatchInlineSnapshot(`
      "allowed  pre-model-call  01K00000000000000000000002
        The chain ran to its end. Nobody can deny at this point.
        when      2026-02-28T09:30:00.000Z, took 3.1 ms
        record    12 events, written by hookledger 0.1.0; verified
        redacted  payloads are redacted copies; equal digests do not prove that the originals were equal

      Chain
                               0 ─────────────────────────────── 8 ms
        #0  late    observe    ███████████████▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒  8 ms    ack
        #1  redact  transform  ██████████    │                         1.8 ms  rewrote v1 as v2
        #2  try     transform           ░░░░░░░░░░░░░░░                3 ms    rewrote v2 as v3 (shadow,…
        #3  same    transform           ██████                         900 µs  changed nothing
        #4  slow    observe                  █▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒         3.5 ms  TIMEOUT: no answer within…
                                             ▲ decided after 3.1 ms

      Subscribers
        #0 late  observe  ·  late from host  ·  timeout 1 s
           saw   v1 e5c6a72ecb7c…, the input  at 0 µs
           said  ack  at 8 ms, after the conclusion
        #1 redact  transform  ·  redact from host  ·  timeout 500 ms
           saw   v1 e5c6a72ecb7c…, same as #0  at 200 µs
           said  rewrote v1 as v2  at 2 ms
           + preModelCall.messages[0]  {"role": "ROLE_USER", "content": [{"text": {"text": "be kind"}}]}
           ~ preModelCall.messages[2].content[0].text.text
               "my key is hunter2, keep it"
             → "my key is [gone], keep it"
        #2 try  transform, shadow  ·  try from host  ·  timeout 500 ms
           saw   v2 9d9c18be14d3…, made by redact  at 2 ms
           said  rewrote v2 as v3 (shadow, not counted)  at 5 ms, after the conclusion
           ~ preModelCall.messages[0].content[0].text.text  "be kind" → "ignored"
           - preModelCall.messages[1]  {"role": "ROLE_USER", "content": [{"text": {"text": "be brief"}}]}
           - preModelCall.messages[2]
               {"role": "ROLE_USER", "content": [{"text": {"text": "my key is [gone], keep it"}}]}
        #3 same  transform  ·  same from host  ·  timeout 500 ms
           saw   v2 9d9c18be14d3…, same as #2  at 2.1 ms
           said  changed nothing  at 3 ms
        #4 slow  observe  ·  slow from host  ·  timeout 3 ms
           saw   v2 9d9c18be14d3…, same as #3  at 3 ms
           said  TIMEOUT: no answer within 3 ms  at 6.5 ms, after the conclusion
           lag   the deadline was noticed 1 ms late

      Payloads
        v1  the input  sha256:e5c6a72ecb7c6de1921433fc5ddd969a5442a0032371a54949b11ac6460cc511  68 B
        v2  by redact  sha256:9d9c18be14d313f663cc3d194eec6ba4c4b3a5502001a16d6d0c77645e5c1022  84 B
        v3  by try     sha256:bfed0c4d0ee7a49549b7ae9e714709201ad78932bb40eed8eafb952b07093689  31 B
           preModelCall.messages[0].role                  "ROLE_USER"
           preModelCall.messages[0].content[0].text.text  "be brief"
           preModelCall.messages[1].role                  "ROLE_USER"
           preModelCall.messages[1].content[0].text.text  "my key is hunter2, keep it"
           preModelCall.model.provider                    "acme"
           preModelCall.model.id                          "m1""
    `);
  });

  it("should tell a timeout as a timeout", async () => {
    expect(await shown(timedOut)).toMatchInlineSnapshot(`
      "denied  pre-tool-call  01K00000000000000000000003
        Denied because gate (veto) gave no answer within 200 ms: a timeout, not a refusal.
        when     2026-02-28T09:30:00.000Z, took 213 ms
        record   4 events, written by hookledger 0.1.0; verified
        session  session-1

      Chain
                           0 ─────────────────────────────── 213 ms
        #0  gate  veto     ████████████████████████████████████████  212 ms  TIMEOUT: no answer within 2…
        #1  log   observe                                         │          not called: the timeout of …
                                             decided after 213 ms ▲

      Subscribers
        #0 gate  veto  ·  gate from host  ·  timeout 200 ms
           saw   v1 2b072dd98db4…, the input  at 1 ms
           said  TIMEOUT: no answer within 200 ms  at 213 ms
           lag   the deadline was noticed 12 ms late
        #1 log  observe  ·  log from host  ·  timeout 1 s
           said  not called: the timeout of gate denied first

      Payloads
        v1  the input  sha256:2b072dd98db42bf7398812285a39e14f40d3890528a2a298b0b7af0348200ab1  53 B
           preToolCall.call.id                  "c1"
           preToolCall.call.toolName            "bash"
           preToolCall.call.arguments["a key"]  1
           preToolCall.call.arguments.command   "ls""
    `);
  });

  it("should tell what recovery closed, in a narrow terminal", async () => {
    expect(await shown(abandoned, { width: 60 })).toMatchInlineSnapshot(`
      "aborted: recovered  pre-tool-call  01K00000000000000000000005
        Aborted by recovery: the process ended before a verdict, so nothing was allowed.
        when       2026-02-28T09:30:00.000Z, took 1 ms
        record     3 events, written by hookledger 0.1.0; verified
        in flight  log

      Chain
                           0 ───────── 1 ms
        #0  log   observe                 »                       in flight w…
        #1  gate  veto                    │                       not called:…
                                          ▲ aborted after 1 ms

      Subscribers
        #0 log  observe  ·  log from host  ·  timeout 1 s
           saw   v1 2b072dd98db4…, the input  at 1 ms
           said  in flight when the dispatch was aborted (recovered)
        #1 gate  veto  ·  gate from host  ·  timeout 1 s
           said  not called: the process ended first

      Payloads
        v1  the input  sha256:2b072dd98db42bf7398812285a39e14f40d3890528a2a298b0b7af0348200ab1  53 B
           preToolCall.call.id             "c1"
           preToolCall.call.toolName       "bash"
           …lCall.call.arguments["a key"]  1
           …olCall.call.arguments.command  "ls""
    `);
  });

  it("should tell what is open", async () => {
    expect(await shown(open)).toMatchInlineSnapshot(`
      "open  pre-tool-call  01K00000000000000000000004
        No verdict is recorded: it is under way, or its process ended (hookledger recover closes it then).
        when    2026-02-28T09:30:00.000Z, not concluded after 1 ms
        record  2 events, written by hookledger 0.1.0; verified

      Chain
                           0 ───────────────────────────────── 1 ms
        #0  log   observe                                         »    called, nothing more is rec…
        #1  gate  veto                                                 not called yet

      Subscribers
        #0 log  observe  ·  log from host  ·  timeout 1 s
           saw   v1 2b072dd98db4…, the input  at 1 ms
           said  called, nothing more is recorded
        #1 gate  veto  ·  gate from host  ·  timeout 1 s
           said  not called yet

      Payloads
        v1  the input  sha256:2b072dd98db42bf7398812285a39e14f40d3890528a2a298b0b7af0348200ab1  53 B
           preToolCall.call.id                  "c1"
           preToolCall.call.toolName            "bash"
           preToolCall.call.arguments["a key"]  1
           preToolCall.call.arguments.command   "ls""
    `);
  });

  it("should tell a decision that was taken back", async () => {
    expect(await shown(withdrawn)).toMatchInlineSnapshot(`
      "aborted: unconfirmed  pre-tool-call  01K00000000000000000000006
        Not allowed. Decided allow by kernel:default, and taken back: the caller had been told no.
        when    2026-02-28T09:30:00.000Z, took 3 ms
        record  5 events, written by hookledger 0.1.0; verified

      Chain
                        0 ─────────────────────────────────── 3 ms
        #0  gate  veto                ███████████████            │  1 ms  allow
                                              decided after 3 ms ▲

      Subscribers
        #0 gate  veto  ·  gate from host  ·  timeout 1 s
           saw   v1 ac0c96eedd77…, the input  at 1 ms
           said  allow  at 2 ms

      Payloads
        v1  the input  sha256:ac0c96eedd77b176e512031e3c17d6df79b43a92440247c8c5550a1ce4b77fe1  14 B
           preToolCall.call.id        "c1"
           preToolCall.call.toolName  "bash""
    `);
  });

  it("should say the same in colour", async () => {
    const plain = await shown(deniedPlan);
    const painted = await shown(deniedPlan, { colours: true });
    expect(painted).not.toBe(plain);
    const [first = "", ...pieces] = painted.split("\u001b[");
    const bare = [first, ...pieces.map((piece) => piece.slice(piece.indexOf("m") + 1))].join("");
    expect(trimmed(bare)).toBe(trimmed(plain));
  });

  it("should list more of the payload when asked to be verbose", async () => {
    const long = messages(...Array.from({ length: 40 }, (_, place) => `message ${place}`));
    const story: Story = (store) =>
      record(store, { n: 9, kept: [long], happenings: [at(0, startedWith(9, chain("veto"), long))] });
    expect(await shown(story)).toContain("… and 66 more; --verbose lists more, --json all");
    const verbose = await shown(story, { verbose: true });
    expect(verbose).toContain('"message 39"');
    expect(verbose).not.toContain("--verbose");
  });
});

function trimmed(text: string): string {
  return text
    .split("\n")
    .map((line) => line.trimEnd())
    .join("\n");
}
