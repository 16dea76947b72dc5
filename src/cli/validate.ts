import { diagnosticJson } from "../config/report.js";
import { type ChainLink, chainBudget, chainOrder } from "../config/resolve.js";
import type { Config } from "../config/types.js";
import type { Producer } from "../core/events.js";
import { HOOK_POINTS, type HookPoint, isHookPoint } from "../core/points.js";
import { HookledgerError } from "../errors.js";
import type { CommandCall, CommandFile } from "./command.js";
import { ConfigRejected, loadNamed, type Problem, redactorFor, tellWarnings } from "./configuration.js";
import { EXIT } from "./exit.js";
import { reportDiagnostics } from "./failure.js";
import { containModules, logTo } from "./modules.js";
import type { Output } from "./output.js";
import { type Cell, columns } from "./table.js";
import { foreign, shortDigest } from "./text.js";

type Chains = ReadonlyMap<HookPoint, readonly ChainLink[]>;

export const validate: CommandFile = {
  name: "validate",
  summary: "checks a configuration whole, and shows the chain of every hook point with its time budget",
  args: "[path]",
  options: [
    {
      flags: "--load",
      description: "also read env(), import modules, start plugins and connect to what the hooks name",
    },
  ],
  examples: [
    { command: "hookledger validate", does: "check ./agent.hcl; nothing is run" },
    { command: "hookledger validate --load", does: "and that everything that it names can be loaded" },
    { command: "hookledger --json validate conf.d", does: "a folder of *.hcl files, as JSON" },
  ],
  async run(call) {
    const { out } = call;
    const path = call.args[0] ?? call.config;
    const loaded = await loadNamed(path);
    const tried = loaded.ok && call.flag("load") ? await loadAll(loaded.config, call) : NOT_LOADED;
    const errors: readonly Problem[] = loaded.ok ? tried.problems : loaded.errors;
    const chains: Chains = loaded.ok && errors.length === 0 ? chainsOf(loaded.config) : new Map();
    tellWarnings(out, loaded.warnings);
    if (errors.length > 0) reportDiagnostics(out, new ConfigRejected(path, errors));
    if (out.json) {
      await out.document({
        ok: errors.length === 0,
        errors: errors.map(diagnosticJson),
        warnings: loaded.warnings.map(diagnosticJson),
        chains: Object.fromEntries(chains),
        ...(tried.loaded === null ? {} : { loaded: tried.loaded }),
      });
    } else if (loaded.ok && errors.length === 0) {
      await printChains(chains, loaded.config, path, out);
      if (tried.loaded !== null && tried.loaded.length > 0) await printLoaded(tried.loaded, out);
    }
    return errors.length === 0 ? EXIT.done : EXIT.usage;
  },
};

/** `loaded`: who was there; null where nothing was loaded. */
type Tried = { readonly problems: readonly Problem[]; readonly loaded: readonly Producer[] | null };

const NOT_LOADED: Tried = { problems: [], loaded: null };

/** Loads what the hooks name, as a dispatch would, and lets go of it again. */
async function loadAll(config: Config, call: CommandCall): Promise<Tried> {
  const { out, host } = call;
  out.redactWith(redactorFor(config, host.env));
  const { loadProviders } = await import("../subscribers/load.js");
  try {
    const providers = await loadProviders(config, {
      env: host.env,
      log: logTo(out),
      redact: (text) => out.redacted(text),
      containment: containModules(call),
    });
    const faults = await providers.start();
    for (const warning of providers.warnings()) out.warn(foreign(out.redacted(warning)));
    const loaded = [...providers.byName.values()].map(({ now }) => now.producer);
    await providers.close();
    return { problems: faults.map((fault) => problemOf(fault, out)), loaded };
  } catch (error) {
    if (!(error instanceof HookledgerError)) throw error;
    return { problems: [problemOf(error, out)], loaded: null };
  }
}

/** Throws the error itself where it has no place in the configuration. */
function problemOf(error: HookledgerError, out: Output): Problem {
  const { code, message, place, hint } = error;
  if (place === undefined) throw error;
  return { code, message: out.redacted(message), place, ...(hint === undefined ? {} : { hint }) };
}

function chainsOf(config: Config): Chains {
  const points = Object.keys(HOOK_POINTS).filter(isHookPoint);
  return new Map(points.map((point) => [point, chainOrder(config, point)]));
}

async function printChains(chains: Chains, config: Config, path: string, out: Output): Promise<void> {
  const { style } = out;
  const lines = [...chains].flatMap(([point, links]) => [
    "",
    `${style.bold(point)}  ${style.dim(links.length === 0 ? "nobody subscribes" : budgetText(config, point))}`,
    ...columns(
      links.map(({ subscriber, provider, mode, timeoutMs }, place): Cell[] => [
        { text: `  ${place + 1}`, paint: style.dim },
        { text: mode, paint: mode === "veto" || mode === "policy" ? style.yellow : style.cyan },
        foreign(subscriber),
        { text: subscriber === provider ? "" : foreign(provider), paint: style.dim },
        `${timeoutMs} ms`,
      ]),
    ),
  ]);
  const count = `${config.files.length} ${config.files.length === 1 ? "file" : "files"}`;
  await out.print([`${style.bold(style.green("valid"))}  ${foreign(path)}, ${count}`, ...lines].join("\n"));
}

async function printLoaded(loaded: readonly Producer[], out: Output): Promise<void> {
  const { style } = out;
  const rows = loaded.map(({ name, version, source, digest }): Cell[] => [
    `  ${foreign(name)}`,
    foreign(out.redacted(version ?? "")),
    foreign(out.redacted(source)),
    { text: digest === undefined ? "" : `file ${shortDigest(digest)}`, paint: style.dim },
  ]);
  await out.print(["", `${style.bold("loaded")}  ${style.dim(String(loaded.length))}`, ...columns(rows)].join("\n"));
}

function budgetText(config: Config, point: HookPoint): string {
  const sum = chainBudget(config, point);
  const { chainBudgetMs = sum } = config.settings;
  return `at most ${sum} ms${chainBudgetMs >= sum ? "" : `, cut to ${chainBudgetMs} ms by chain_budget_ms`}`;
}
