import { canonicalText } from "./canonical.js";
import { at, type Diagnostics, quoted } from "./diagnostics.js";
import type { FileProbe } from "./file-probe.js";
import { freeBody } from "./free-body.js";
import { readHooks } from "./hooks.js";
import type { Document } from "./parse.js";
import { readPolicies } from "./policies.js";
import { declaredNames, readProviders } from "./providers.js";
import { NAME, NAME_RULE } from "./readers.js";
import { readSettings } from "./settings.js";
import { didYouMean } from "./spelling.js";
import type { Config, Hook, Profile, Provider } from "./types.js";
import type { Block, Label } from "./value.js";

/** How each block of the schema is written. */
const BLOCKS = new Map([
  ["required_providers", "required_providers { … }"],
  ["provider", 'provider "<name>" { … }'],
  ["hook", 'hook "<point>" { … }'],
  ["policy", 'policy "<name>" { … }'],
  ["agent_profile", 'agent_profile "<name>" { … }'],
  ["settings", "settings { … }"],
]);

/** One configuration from all documents, which are in the order of their files. What is wrong with it goes to `report`. */
export function assemble(documents: readonly Document[], probe: FileProbe, report: Diagnostics): Config {
  const blocks = documents.flatMap((document) => topLevelBlocks(document, report));
  const of = (type: string) => blocks.filter((block) => block.type === type);
  const isLost = (type: string) => documents.some(({ lost }) => lost.includes(type) || lost.includes("*"));
  const required = of("required_providers");
  const { settings, devOverrides } = readSettings(onlySettings(of("settings"), report), report);
  const declared = declaredNames(required);
  const hooks = readHooks(
    { blocks: of("hook"), declared: isLost("required_providers") ? undefined : declared, strict: settings.strict },
    report,
  );
  const providers = readProviders(
    { required, bodies: of("provider"), devOverrides, probe, incomplete: isLost("required_providers") },
    report,
  );
  if (!isLost("hook")) warnUnused(providers, hooks, report);
  return {
    files: documents.map(({ source }) => source.file),
    providers,
    hooks,
    policy: readPolicies(named(of("policy"), report), report),
    profiles: new Map(
      named(of("agent_profile"), report).map(([label, block]) => [label.text, profile(label, block, report)]),
    ),
    settings,
    canonical: canonicalText(blocks),
  };
}

function topLevelBlocks({ items }: Document, report: Diagnostics): readonly Block[] {
  const blocks: Block[] = [];
  for (const item of items) {
    const name = item.kind === "block" ? item.type : item.name;
    const form = BLOCKS.get(name);
    if (item.kind === "block" && form !== undefined) {
      blocks.push(item);
      continue;
    }
    const hint = form === undefined ? didYouMean(name, [...BLOCKS.keys()]) : `write it as a block: ${form}`;
    report.error(item.place, `${form === undefined ? "unknown" : "unexpected"} ${item.kind} ${quoted(name)}`, { hint });
  }
  return blocks;
}

function onlySettings(blocks: readonly Block[], report: Diagnostics): Block | undefined {
  const [first, ...more] = blocks;
  for (const { labels } of blocks) {
    if (labels[0] !== undefined) report.error(labels[0].place, "settings takes no label");
  }
  for (const block of more) {
    report.error(block.place, `a second settings block; first at ${at(first?.place ?? block.place)}`);
    readSettings(block, report);
  }
  return first;
}

/** Blocks with one label. What is wrong with a label is reported; what is wrong with the block still can be. */
function named(blocks: readonly Block[], report: Diagnostics): readonly (readonly [Label, Block])[] {
  const first = new Map<string, Block>();
  const kept: (readonly [Label, Block])[] = [];
  for (const block of blocks) {
    const { type, labels, place } = block;
    const [label, ...more] = labels;
    if (label === undefined || more.length > 0) {
      report.error(more[0]?.place ?? place, `${type} takes one label, its name`, { hint: `${type} "name" { … }` });
      continue;
    }
    if (!NAME.test(label.text)) {
      report.error(label.place, `${quoted(label.text)} is not a valid name`, { hint: `a name is ${NAME_RULE}` });
    }
    const before = first.get(label.text);
    if (before !== undefined) {
      report.error(label.place, `a second ${type} ${quoted(label.text)}; first at ${at(before.place)}`);
    } else {
      first.set(label.text, block);
    }
    kept.push([label, block]);
  }
  return kept;
}

function profile({ text: name }: Label, { body, place }: Block, report: Diagnostics): Profile {
  return { name, body: freeBody(body, "keep", report), place };
}

function warnUnused(providers: ReadonlyMap<string, Provider>, hooks: readonly Hook[], report: Diagnostics): void {
  const used = new Set(hooks.map((hook) => hook.provider));
  for (const { name, place } of providers.values()) {
    if (used.has(name)) continue;
    report.warning(place, `provider ${quoted(name)} has no hook: it is neither started nor called`);
  }
}
