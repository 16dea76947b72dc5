/**
 * Deprecated: what `media` and `originalMedia` say, once more in `metadata`. Handlers find it there; no event, and so no record,
 * holds it.
 */

import { type LogSink, loggerFor } from "../../subscribers/log.js";
import type { MediaFact, MediaFacts, Metadata } from "../facts.js";
import type { Dress } from "../handler-chain.js";

type Alias = {
  readonly name: string;
  readonly list: "media" | "originalMedia";
  readonly read: (facts: readonly MediaFact[]) => string | readonly string[] | undefined;
};

const FIELDS = [
  ["Path", "path"],
  ["Url", "url"],
  ["Type", "contentType"],
] as const;

const ALIASES: readonly Alias[] = (["media", "originalMedia"] as const).flatMap((list) =>
  FIELDS.flatMap(([suffix, field]): readonly Alias[] => [
    { name: `${list}${suffix}`, list, read: ([first]) => nonEmpty(first?.[field]) },
    { name: `${list}${suffix}s`, list, read: (facts) => allOf(facts, field) },
  ]),
);

const NAMES: ReadonlySet<string> = new Set(ALIASES.map(({ name }) => name));

/** A channel's own metadata; by the names of the aliases it says nothing. */
export function withoutAliases(metadata: Metadata): Metadata {
  return Object.fromEntries(Object.entries(metadata).filter(([name]) => !NAMES.has(name)));
}

type Event = MediaFacts & { readonly metadata?: Metadata };

/** The event with every alias that has a value. `onRead`: told of each time one is read. */
export function withDeprecatedAliases<E extends Event>(event: E, onRead: (alias: string) => void): E {
  const aliases = ALIASES.flatMap(({ name, list, read }) => {
    const value = read(event[list] ?? []);
    return value === undefined ? [] : [{ name, value }];
  });
  if (aliases.length === 0) return event;
  const metadata: Metadata = { ...event.metadata };
  for (const { name, value } of aliases) Object.defineProperty(metadata, name, accessor(name, value, onRead));
  return { ...event, metadata };
}

/** Enumerable: also who spreads or prints metadata reads it. The metadata is the handler's own: writing to it is no reading. */
function accessor(name: string, value: unknown, onRead: (alias: string) => void): PropertyDescriptor {
  return {
    configurable: true,
    enumerable: true,
    get() {
      onRead(name);
      return value;
    },
    set(written: unknown) {
      Object.defineProperty(this, name, { value: written, configurable: true, enumerable: true, writable: true });
    },
  };
}

/** For every run: the first alias that a plugin reads is told to `log`, once a plugin. */
export function aliasDress(log: LogSink): Dress {
  const warned = new Set<string>();
  return (event, plugin) =>
    withDeprecatedAliases(event, (alias) => {
      if (warned.has(plugin)) return;
      warned.add(plugin);
      const instead = alias.startsWith("original") ? "originalMedia" : "media";
      loggerFor(plugin, log).warn(`plugin "${plugin}" reads metadata.${alias}, which is deprecated: read ${instead}`);
    });
}

/** Empty entries are left out, so that places do not tell. */
function allOf(facts: readonly MediaFact[], field: "path" | "url" | "contentType"): readonly string[] | undefined {
  const values = facts.flatMap((fact) => nonEmpty(fact[field]) ?? []);
  return values.length === 0 ? undefined : values;
}

function nonEmpty(text: string | undefined): string | undefined {
  return text === "" ? undefined : text;
}
