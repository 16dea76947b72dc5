// A coding agent's session, from the side of the harness: moments at which others have a say. The model is a stand-in whose
// answers are written here; what is asked of the subscribers, and what they answer, is not.
import { randomBytes } from "node:crypto";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createKernel, payloadToJson } from "hookledger";
import { check, facts, proved, scene } from "./story.mjs";

/** Plays it. Returns the key that nobody else was to see, and the results in order. */
export async function playSession(stage) {
  const kernel = await createKernel({ config: await writeConfig(stage), store: stage.store, log: stage.log });
  const key = `sk-${randomBytes(20).toString("hex")}`;
  const workspace = join(stage.folder, "workspace");
  await mkdir(workspace);
  await writeFile(join(workspace, ".env"), `IMPORT_URL=https://partner.example/feed\nIMPORT_API_KEY=${key}\n`);
  const agent = { kernel, key, workspace, stage, messages: [], modelCalls: 0, turn: "turn-1" };
  try {
    await kernel.start();
    check("every plugin starts, and the service is there", kernel.warnings, []);
    const results = [
      await redaction(agent),
      await plan(agent),
      await hangingGate(agent),
      ...(await killedGate(agent)),
      await dyingObserver(agent),
      await swappedModel(agent),
    ];
    return { key, results };
  } finally {
    await kernel.close();
  }
}

async function redaction(agent) {
  await scene(
    "1  A secret on its way to the model",
    "A nightly import gets a 401. The agent has read .env to find out why, and now the model is to",
    "be sent an API key. The redactor stands between them and rewrites the messages.",
  );
  agent.messages.push(
    user({ text: { text: "The nightly import gets a 401 since yesterday. Find out why, and fix it." } }),
    assistant({ toolUse: { id: "call-1", name: "read_file", arguments: { path: ".env" } } }),
    user({ toolResult: { toolUseId: "call-1", content: [{ text: { text: await readTool(agent, ".env") } }] } }),
  );
  const sent = modelCall(agent);
  const result = await agent.kernel.dispatch(sent, inSession(agent));
  check("the redacted model call is allowed", [result.allowed, result.hookErrors], [true, []]);

  const received = payloadToJson(result.payload);
  check(
    "the model gets the same messages, without the key",
    [JSON.stringify(received).includes(agent.key), received],
    [false, JSON.parse(JSON.stringify(sent).replaceAll(agent.key, "[key removed]"))],
  );
  agent.modelCalls += 1;
  const line = (payload) => /IMPORT_API_KEY=\S+( removed])?/.exec(textOfResult(payload))[0];
  await facts([
    ["the tool read", line(sent).replace(agent.key, `sk-… (${agent.key.length} characters)`)],
    ["the model got", line(received)],
  ]);
  await proved("the model got everything but the key");
  return result;
}

async function plan(agent) {
  await scene(
    "2  A plan with a dangerous item",
    "The model wants to read a log, change a file, and drop a table. The kernel's own policy judges",
    "each of them, before any plugin may.",
  );
  agent.messages.push(assistant({ text: { text: "I read the log, fix the header, and drop the table of failures." } }));
  const result = await agent.kernel.dispatch({ planReady: { plan: PLAN } }, inSession(agent));
  const decided = result.planDecisions.map(({ itemId, decision, decidedBy }) => [itemId, decision, decidedBy]);
  check("policy allows one item, asks for one, and denies one", decided, [
    ["read", "allow", "policy:default"],
    ["edit", "ask", "policy:ask_before_writing"],
    ["drop", "deny", "policy:never_critical"],
  ]);
  check("the plan as a whole is not allowed", [result.decision, result.allowed], ["allow", false]);
  await facts(
    PLAN.items.map(({ operationName }, place) => [operationName, decided[place][1], `by ${decided[place][2]}`]),
  );
  await proved("`allowed` is false unless every item may go: nobody applies a plan by mistake");
  return result;
}

async function hangingGate(agent) {
  await scene(
    "3  A gate that never answers",
    "The user says yes to the change. A colleague has to agree too, asked by the approvals gate in a",
    "chat that hangs. The gate has 600 ms.",
  );
  const result = await agent.kernel.dispatch(writeFileCall("call-2"), inSession(agent));
  const [error] = result.hookErrors;
  check(
    "a gate that hangs denies",
    [result.decision, result.decidedBy, result.hookErrors.length, error?.category],
    ["deny", "approvals", 1, "TIMEOUT"],
  );
  check("it denies at its deadline", result.durationMs >= 600 && result.durationMs < 3_000, true);
  await facts([[`denied after ${Math.round(result.durationMs)} ms`, `${error.subscriber}: ${error.category}`]]);
  await proved("silence is no consent, and it is not told as somebody's refusal either");
  return result;
}

async function killedGate(agent) {
  await scene(
    "4  A gate that is killed",
    "The user tries again. This time the system is short of memory, and while the gate waits for its",
    "colleague, its process is killed.",
  );
  const asked = agent.stage.says("approvals", /process (\d+) asks about/);
  const dispatched = agent.kernel.dispatch(writeFileCall("call-3"), inSession(agent));
  const [, pid] = await asked;
  process.kill(Number(pid), "SIGKILL");
  const killed = await dispatched;
  const [error] = killed.hookErrors;
  check(
    "a gate that dies denies",
    [killed.decision, killed.decidedBy, killed.hookErrors.length, error?.category],
    ["deny", "approvals", 1, "PROCESS_CRASHED"],
  );
  check("the error says how it died", /SIGKILL/.test(error.message), true);

  const passed = agent.stage.says("approvals", /process (\d+) lets read_file pass/);
  const call = { id: "call-4", toolName: "read_file", arguments: { path: "import.log" } };
  const next = await agent.kernel.dispatch({ preToolCall: { call } }, inSession(agent));
  check("the next call is allowed", [next.allowed, next.hookErrors], [true, []]);
  const [, nextPid] = await passed;
  check("another process has judged it", nextPid === pid, false);
  await facts([
    [`process ${pid}`, "write_file", `denied at once: ${error.category}, ${error.message}`],
    [`process ${nextPid}`, "read_file", "allowed"],
  ]);
  await proved("a dead gate lets nothing through, and the next call finds a new one");
  return [killed, next];
}

async function dyingObserver(agent) {
  await scene(
    "5  An observer that dies",
    "Reading the log fails, as there is none. The metrics plugin stumbles over that, and its process",
    "ends in the middle of our call. The audit plugin beside it writes its line.",
  );
  const error = await readTool(agent, "import.log").then(
    () => null,
    ({ code }) => ({ category: "TOOL_ERROR_CATEGORY_NOT_FOUND", message: `import.log: ${code}` }),
  );
  const call = { id: "call-4", toolName: "read_file", arguments: { path: "import.log" } };
  const sent = { postToolCall: { call, error } };
  const died = agent.stage.says("metrics", /\b\w*Error: .+?(?=\\u\{a\}|$)/);
  const result = await agent.kernel.dispatch(sent, inSession(agent));
  const [lastWords] = await died;
  check(
    "its death is recorded",
    result.hookErrors.map(({ subscriber, category }) => [subscriber, category]),
    [["metrics", "PROCESS_CRASHED"]],
  );
  check("it changes nothing", [result.allowed, payloadToJson(result.payload)], [true, sent]);
  const [line, ...more] = (await readFile(agent.stage.audit, "utf8")).trimEnd().split("\n");
  const audited = JSON.parse(line);
  check(
    "the audit has its line, without what was said",
    [more, audited.call, audited.error, line.includes("import.log")],
    [[], "call-4", error.category, false],
  );
  await facts([
    ["metrics' last words", lastWords],
    [
      "the audit's line",
      `${audited.call}, ${audited.tool}, arguments ${audited.arguments.slice(0, 19)}…, ${audited.error}`,
    ],
    ["the dispatch", `allowed, payload as it was, ${result.hookErrors[0].category} on record`],
  ]);
  await proved("a broken counter cannot break the agent, and cannot break unseen");
  return result;
}

async function swappedModel(agent) {
  await scene(
    "6  A rewrite that goes too far",
    "The conversation has grown, and the cost saver answers with a cheaper model. A transform may",
    "rewrite messages; which model is asked is not its business.",
  );
  agent.messages.push(
    user({ toolResult: { toolUseId: "call-4", content: [{ text: { text: "no such file" } }], isError: true } }),
  );
  agent.turn = "turn-2";
  const result = await agent.kernel.dispatch(modelCall(agent), inSession(agent));
  if (result.payload !== null) agent.modelCalls += 1;
  const [error] = result.hookErrors;
  check(
    "a swapped model aborts the call",
    [result.status, result.abortCause, error?.subscriber, error?.category],
    ["aborted", "hook_error", "cost-saver", "INVALID_RESPONSE"],
  );
  check("the error names the field", /\bmodel\b/.test(error.message), true);
  check("the model was asked once in this session", agent.modelCalls, 1);
  await facts([["aborted: hook_error", `${error.subscriber}: ${error.category}, ${error.message}`]]);
  await proved("no model is asked: neither the wrong one, nor the right one with a half-made request");
  return result;
}

const PLAN = {
  turnId: "turn-1",
  items: [
    planItem("read", "filesystem", "read_file", "DATA_SOURCE", "READ_ONLY", { path: "import.log" }),
    planItem("edit", "filesystem", "write_file", "RESOURCE", "MODERATE", { path: "src/import.mjs" }),
    planItem("drop", "postgres", "drop_table", "RESOURCE", "CRITICAL", { table: "import_failures" }),
  ],
};

function planItem(id, provider, operationName, kind, risk, input) {
  return {
    id,
    provider,
    operationName,
    input,
    kind: `TOOL_KIND_${kind}`,
    risk: `RISK_CLASS_${risk}`,
    decision: "PLAN_DECISION_PENDING",
  };
}

function writeFileCall(id) {
  const call = { id, toolName: "write_file", arguments: { path: "src/import.mjs" } };
  return { preToolCall: { call, planItem: PLAN.items.find((item) => item.id === "edit") } };
}

/** Folders of this run for those that the configuration names. */
async function writeConfig({ clone, folder, sockets }) {
  const folders = { "/opt/hookledger": clone, "/run/hookledger-demo": sockets, "/var/lib/hookledger-demo": folder };
  const text = await readFile(new URL("agent.hcl", import.meta.url), "utf8");
  const path = join(folder, "agent.hcl");
  const named = new RegExp(Object.keys(folders).join("|"), "g");
  await writeFile(
    path,
    text.replace(named, (name) => inHcl(folders[name])),
  );
  return path;
}

/** As it stands between quotation marks; a template begins with ${ or %{, and is written out by doubling its first character. */
function inHcl(text) {
  return JSON.stringify(text)
    .slice(1, -1)
    .replace(/[$%](?=\{)/g, "$&$&");
}

const readTool = ({ workspace }, path) => readFile(join(workspace, path), "utf8");
const user = (block) => ({ role: "ROLE_USER", content: [block] });
const assistant = (block) => ({ role: "ROLE_ASSISTANT", content: [block] });
const modelCall = ({ messages }) => ({ preModelCall: { messages, model: { provider: "example", id: "large-1" } } });
const inSession = ({ turn }) => ({ session: "demo", turn });
const textOfResult = ({ preModelCall }) => preModelCall.messages[2].content[0].toolResult.content[0].text.text;
