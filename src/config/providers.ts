import { dirname, resolve } from "node:path";
import { at, type Diagnostics, quoted } from "./diagnostics.js";
import { Fields } from "./fields.js";
import type { FileProbe } from "./file-probe.js";
import { type ConfigObject, freeBody } from "./free-body.js";
import { readSource } from "./provider-source.js";
import { listOf, NAME, NAME_RULE, type Reader, text, wrongType } from "./readers.js";
import type { ReadSettings } from "./settings.js";
import { didYouMean } from "./spelling.js";
import type { Provider, Source } from "./types.js";
import type { Attribute, Block, Item } from "./value.js";
import { parseConstraint } from "./version.js";

/** Stands before the ids of what is no plugin: `kernel:policy`, `kernel:default`. */
const KERNEL = "kernel";

type ProviderParts = {
  /** `required_providers` blocks. */
  readonly required: readonly Block[];
  /** `provider` blocks. */
  readonly bodies: readonly Block[];
  readonly devOverrides: ReadSettings["devOverrides"];
  readonly probe: FileProbe;
  /** true: a `required_providers` block could not be read, so that an unknown name may be declared after all. */
  readonly incomplete: boolean;
};

/** Providers by name, in textual order. */
export function readProviders(parts: ProviderParts, report: Diagnostics): ReadonlyMap<string, Provider> {
  const entries = declaredEntries(parts.required, report);
  const bodies = readBodies(parts, new Set(entries.map(({ name }) => name)), report);
  const providers = new Map<string, Provider>();
  for (const entry of entries) {
    const provider = readProvider(entry, bodies.get(entry.name), parts, report);
    if (provider !== undefined && !providers.has(entry.name)) providers.set(entry.name, provider);
  }
  return providers;
}

/** All names that are declared, also of providers that could not be read. */
export function declaredNames(required: readonly Block[]): ReadonlySet<string> {
  return new Set(
    required.flatMap(({ body }) => body.filter((item) => item.kind === "attribute").map(({ name }) => name)),
  );
}

function declaredEntries(required: readonly Block[], report: Diagnostics): readonly Attribute[] {
  const entries: Attribute[] = [];
  const firsts = new Map<string, Attribute>();
  for (const { labels, body } of required) {
    const [label] = labels;
    if (label !== undefined) report.error(label.place, "required_providers takes no label");
    for (const item of body) {
      if (item.kind === "block") {
        report.error(item.place, `unexpected block ${quoted(item.type)} in required_providers`, {
          hint: `write ${item.type} = { source = … }`,
        });
        continue;
      }
      if (!NAME.test(item.name)) {
        report.error(item.place, `${quoted(item.name)} is not a valid name for a provider`, {
          hint: `a name is ${NAME_RULE}`,
        });
      } else if (item.name === KERNEL) {
        report.error(item.place, `the provider name ${quoted(KERNEL)} is the kernel's own`, { hint: "choose another" });
      }
      entries.push(item);
      const first = firsts.get(item.name);
      if (first === undefined) firsts.set(item.name, item);
      else report.error(item.place, `provider ${quoted(item.name)} is declared twice; first at ${at(first.place)}`);
    }
  }
  return entries;
}

/** The first `provider` block of each name. */
function readBodies(
  { bodies, incomplete }: ProviderParts,
  declared: ReadonlySet<string>,
  report: Diagnostics,
): ReadonlyMap<string, Block> {
  const read = new Map<string, Block>();
  for (const block of bodies) {
    const [label, ...more] = block.labels;
    if (label === undefined || more.length > 0) {
      report.error(more[0]?.place ?? block.place, "provider takes one label, its name", {
        hint: 'provider "name" { … }',
      });
      continue;
    }
    const first = read.get(label.text);
    if (first !== undefined) {
      report.error(label.place, `a second provider ${quoted(label.text)}; first at ${at(first.place)}`);
    } else if (!declared.has(label.text) && !incomplete) {
      report.error(label.place, `provider ${quoted(label.text)} is not in required_providers`, {
        hint: declared.size > 0 ? didYouMean(label.text, [...declared]) : undefined,
      });
    }
    if (first === undefined && declared.has(label.text)) read.set(label.text, block);
    else freeBody(block.body, "refuse", report);
  }
  return read;
}

/** One entry of `required_providers`, with its `provider` block. */
function readProvider(
  { name, value, place }: Attribute,
  block: Block | undefined,
  { devOverrides, probe }: ProviderParts,
  report: Diagnostics,
): Provider | undefined {
  const owner = `provider ${quoted(name)}`;
  if (value.type !== "object") return wrongType(value, owner, "an object: { source = … }", report);
  const fields = new Fields(owner, place, value.members, report);
  const sourceText = fields.required("source", text);
  const version = fields.optional("version", constraint);
  const sensitive = fields.optional("sensitive", listOf(text)) ?? [];
  const folder = dirname(resolve(place.file));
  const source = readSource(sourceText, fields, { name, folder, devOverrides, probe, report });
  fields.close();
  const body = block && readBody(block, source, checkSensitive(fields, sensitive, block, report), report);
  if (source === undefined || sourceText === undefined) return undefined;
  if (version !== undefined && (source.kind === "module" || source.kind === "host")) {
    report.warning(fields.placeOf("version"), `${owner}: there is no version to compare ${quoted(version)} to`);
  }
  return {
    name,
    sourceText,
    source,
    ...(version !== undefined && { version }),
    sensitive,
    ...(body !== undefined && { body }),
    place,
  };
}

/** `items`: what there is to read in the block. */
function readBody(block: Block, source: Source | undefined, items: readonly Item[], report: Diagnostics): ConfigObject {
  if (source?.kind === "grpc") {
    report.error(block.place, "a provider that is reached at an address takes no body", {
      hint: "configure it where it runs",
    });
  }
  return freeBody(items, "refuse", report);
}

/** What is listed must be exactly `env("NAME")`, so that no secret is written down. Returns the body without what is not. */
function checkSensitive(
  fields: Fields,
  sensitive: readonly string[],
  block: Block | undefined,
  report: Diagnostics,
): readonly Item[] {
  const body = block?.body ?? [];
  const names = body.map(nameOf);
  for (const name of sensitive) {
    if (names.includes(name)) continue;
    report.warning(fields.placeOf("sensitive"), `sensitive attribute ${quoted(name)} is not set`, {
      hint: names.length > 0 ? didYouMean(name, names) : undefined,
    });
  }
  return body.filter((item) => {
    if (!sensitive.includes(nameOf(item)) || (item.kind === "attribute" && item.value.type === "env")) return true;
    const place = item.kind === "block" ? item.place : item.value.place;
    report.error(place, `sensitive attribute ${quoted(nameOf(item))} must be exactly env("NAME")`, {
      hint: "keep the secret in the environment of the process that dispatches",
    });
    return false;
  });
}

function nameOf(item: Item): string {
  return item.kind === "block" ? item.type : item.name;
}

const constraint: Reader<string> = (value, what, report) => {
  const read = text(value, what, report);
  if (read === undefined || parseConstraint(read) !== null) return read;
  report.error(value.place, `${what} ${quoted(read)} is no version constraint`, {
    hint: 'write for example "~> 1.2" or ">= 1.0, < 2.0"',
  });
  return undefined;
};
