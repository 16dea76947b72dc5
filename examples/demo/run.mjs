// `npm run demo`: one session of a coding agent whose hooks lie in other processes, and what the ledger can prove of it.
//
//   --keep    leave the ledger where it is        (so by default on a terminal, where somebody may want to look around)
//   --clean   leave nothing                       (so by default anywhere else)
import { proveIt, shellWord } from "./proof.mjs";
import { playSession } from "./session.mjs";
import { Stage } from "./stage.mjs";
import { facts, failed, note, title, Untrue } from "./story.mjs";

const flags = new Set(process.argv.slice(2));
const keep = flags.has("--keep") || (process.stdout.isTTY === true && !flags.has("--clean"));
const CAST = [
  ["redactor", "plugin", "transform  takes keys out of messages"],
  ["cost-saver", "service", "transform  likes cheap models"],
  ["approvals", "plugin", "veto       asks a person"],
  ["metrics", "plugin", "observe    counts what tools answer"],
  ["audit", "plugin", "observe    writes down what tools did"],
];

const began = performance.now();
const stage = new Stage({ keep });
try {
  await title("hookledger: a session of a coding agent, and what its ledger can prove");
  await note(
    "The model is a stand-in. The rest is real: subscribers in processes of their own, most of them plugins that",
    "the kernel starts and one a gRPC service that somebody else runs, an SQLite ledger, and the command line.",
  );
  await facts(CAST);
  await stage.service("cost-saver");
  const session = await playSession(stage);
  await stage.stopServices();
  await proveIt(stage, session);
  await farewell(session);
} catch (error) {
  failed(error instanceof Untrue ? error.message : error.stack);
  process.stderr.write(stage.logged);
  process.exitCode = 1;
}
process.exit();

async function farewell({ results }) {
  const seconds = ((performance.now() - began) / 1000).toFixed(1);
  await title(`\n\nEverything above was checked while it was told, in ${seconds} s.`);
  if (keep) {
    await note("The ledger is still there, for you to look around in:");
    await facts([
      [`export HOOKLEDGER_STORE=${shellWord(stage.store)}`],
      ["npx hookledger list"],
      [`npx hookledger show ${results.at(-1).dispatchId} --verbose`],
      [`rm -r ${shellWord(stage.folder)}`],
    ]);
  } else {
    await note("Its files are removed again. To look around in the ledger yourself: npm run demo -- --keep");
  }
  await note("", "For a start of your own: npx hookledger init my-agent, or init --plugin my-plugin");
}
