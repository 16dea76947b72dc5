import type { BundleStore } from "../store/bundle/store.js";
import { openBundle } from "../store/bundle/store.js";
import { openStore } from "../store/open.js";
import { type Imported, importLedger } from "../transfer/import.js";
import { type BundleFinding, bundleFinding } from "./bundle-finding.js";
import type { CommandFile } from "./command.js";
import { EXIT } from "./exit.js";
import type { Output } from "./output.js";
import { bundlePath, lackingLine, refusalLines, refusalRows } from "./refusals.js";
import { foreign } from "./text.js";

export const importCommand: CommandFile = {
  name: "import",
  summary: "copies an evidence bundle into the ledger, each dispatch after a check; doing it again changes nothing",
  args: "<file>",
  options: [],
  examples: [
    { command: "hookledger import evidence.hlb", does: "into the ledger that --store names, which is made if need be" },
    { command: "hookledger --json import evidence.hlb", does: "what was refused, and why" },
  ],
  async run(call) {
    const bundle = openBundle(bundlePath(call.args[0]));
    try {
      const finding = bundleFinding(bundle);
      const imported = await copied(bundle, call.store, call.out);
      const whole = finding.ok && imported.refused.length + imported.missing + imported.damaged === 0;
      await print(imported, finding, whole, call.out);
      return whole ? EXIT.done : EXIT.divergence;
    } finally {
      await bundle.close();
    }
  },
};

async function copied(bundle: BundleStore, url: string, out: Output): Promise<Imported> {
  const store = await openStore(url, { mode: "write" });
  let imported: Imported;
  try {
    imported = await importLedger(bundle, store, ({ added, grown, kept }) =>
      out.progress(`${added + grown} imported, ${kept} there already`),
    );
  } catch (error) {
    // The first failure says more than what closing comes to after it.
    await store.close().catch(() => {});
    throw error;
  }
  await store.close();
  return imported;
}

async function print(imported: Imported, finding: BundleFinding, whole: boolean, out: Output): Promise<void> {
  const { added, grown, kept, refused, missing, damaged } = imported;
  if (out.json) {
    await out.document({ bundle: finding, added, grown, kept, refused: refusalRows(refused), missing, damaged });
    return;
  }
  const { style } = out;
  const title = whole ? style.bold(style.green("imported")) : style.bold(style.red("imported in part"));
  await out.print(
    [
      `${title}  ${added} added, ${grown} grown, ${kept} there already`,
      ...(finding.ok ? [] : [`${style.red("bundle")}    ${foreign(finding.detail ?? "")}`]),
      ...lackingLine({ missing, damaged }, style),
      ...refusalLines(refused, style),
    ].join("\n"),
  );
}
