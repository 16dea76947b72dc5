// `npm run demo:gateway`: a gateway and a chat service in processes of their own, a conversation over HTTP, and what the ledger says of it.
//
//   --keep    leave the ledger where it is        (so by default on a terminal, where somebody may want to look around)
//   --clean   leave nothing                       (so by default anywhere else)
import { check, facts, failed, note, proved, scene, title, typed, Untrue } from "../demo/story.mjs";
import { converse, outage } from "./conversation.mjs";
import { Processes } from "./processes.mjs";

const flags = new Set(process.argv.slice(2));
const keep = flags.has("--keep") || (process.stdout.isTTY === true && !flags.has("--clean"));
const CAST = [
  ["claimer", "before_dispatch", "answers commands itself"],
  ["secret-blocker", "message_sending", "cancels replies with a key in them"],
  ["rewriter", "message_sending", "makes links into the wiki links to the help pages"],
  ["delivery-logger", "message_sent", "writes down what was delivered"],
];

const began = performance.now();
const processes = new Processes({ keep });
try {
  await title("hookledger: a chat gateway, and why its customers saw what they saw");
  await note("The model is a stand-in. The webhook, the channel, the four plugins and the ledger are real:");
  await facts(CAST);
  await explain(await play());
  await farewell();
} catch (error) {
  failed(error instanceof Untrue ? error.message : error.stack);
  process.exitCode = 1;
}
process.exit();

async function play() {
  const sent = [];
  const channel = await processes.start("channel.mjs");
  const gateway = await processes.start("gateway.mjs", [processes.store, channel.first], (line) => {
    sent.push(JSON.parse(line).sent);
  });
  const { webhook } = JSON.parse(gateway.first);
  const runs = await converse(webhook, channel.first);
  await outage(webhook, channel.first, () => command(["queue", "list"]));

  await scene("7  The gateway is told to end", "It answers what it has taken, and closes its ledger.");
  check("it ends well", await processes.end(gateway.child), 0);
  check("the delivery logger was told of every reply that was sent", sent, [
    "chat-1 to ada",
    "chat-2 to ada",
    "chat-3 to ada",
    "chat-4 to ada",
  ]);
  await proved(`the delivery logger wrote ${sent.length} lines: ${sent.join(", ")}`);
  await processes.end(channel.child);
  return runs;
}

/** Everybody is gone: from here on there is only the ledger. */
async function explain({ suppressed, rewritten, claimed }) {
  await scene("8  Why did ada not get an answer to m-3?");
  await explained(suppressed);
  await scene("9  Why did m-2 get another link than the model gave?");
  await explained(rewritten);
  await scene("10  Who answered m-4?");
  await explained(claimed);
  await scene("11  Is that what happened?", "The record of every run, against what replay makes of it.");
  await command(["verify", "--all"]);
}

async function explained(id) {
  await command(["show", id]);
  await command(["replay", id]);
}

async function command(args) {
  await typed(["npx hookledger", ...args].join(" "));
  check(`hookledger ${args.join(" ")} ends well`, await processes.hookledger(args), 0);
}

async function farewell() {
  const seconds = ((performance.now() - began) / 1000).toFixed(1);
  await title(`\n\nEverything above was checked while it was told, in ${seconds} s.`);
  if (!keep) return note("Its files are removed again. To look around in the ledger: npm run demo:gateway -- --keep");
  await note("The ledger is still there, for you to look around in:");
  return facts([
    [`export HOOKLEDGER_STORE='${processes.store}'`],
    ["npx hookledger list"],
    [`rm -r '${processes.folder}'`],
  ]);
}
