/** `source = "module:./x.mjs"`: a file that Node itself imports, in this process. */

import { realpath, stat } from "node:fs/promises";
import { pathToFileURL } from "node:url";
import type { Provider } from "../config/types.js";
import { HookledgerError } from "../errors.js";
import type { Containment } from "./containment.js";
import { thrownText } from "./fault.js";
import { handlersIn, handlerTable, loadError, type NeededHook } from "./handler-table.js";
import type { HookConfig } from "./handlers.js";
import { inProcess } from "./in-process.js";
import { type LogSink, loggerFor } from "./log.js";
import type { SubscriberTransport } from "./port.js";

type LoadOptions = {
  /** Deep-frozen. */
  readonly config: HookConfig;
  readonly log: LogSink;
  /** ms for the import, 10 000 by default. Code that blocks the thread while it is imported cannot be interrupted. */
  readonly timeoutMs?: number;
  readonly containment?: Containment;
};

const IMPORT_TIMEOUT_MS = 10_000;

/**
 * Throws HL_SUBSCRIBER_LOAD: a missing file, a syntax error, an import that throws, exits or takes too long, no default
 * export, or no handler for a hook.
 */
export async function loadModule(
  provider: Provider,
  needed: readonly NeededHook[],
  options: LoadOptions,
): Promise<SubscriberTransport> {
  const { exported } = await importOf(provider, options);
  return transportOf(provider, needed, exported, options);
}

/** The same for whatever handlers the module has, which may be none. */
export async function loadWholeModule(
  provider: Provider,
  options: LoadOptions,
): Promise<{ readonly handlers: readonly NeededHook[]; readonly transport: SubscriberTransport }> {
  const { exported } = await importOf(provider, options);
  const handlers = handlersIn(provider, exported);
  return { handlers, transport: transportOf(provider, handlers, exported, options) };
}

/** The default export, in an object: a promise would take one that has a `then` for another promise. */
async function importOf(provider: Provider, options: LoadOptions): Promise<{ readonly exported: unknown }> {
  const { source } = provider;
  if (source.kind !== "module") throw new HookledgerError("HL_INTERNAL", `"${provider.name}" is no module`);
  const url = await fileUrl(provider, source.path);
  const { containment } = options;
  const load = () => import(url);
  const imported = await inTime(
    provider,
    containment === undefined ? load() : containment.run(provider.name, load),
    options.timeoutMs ?? IMPORT_TIMEOUT_MS,
  );
  return { exported: defaultExport(provider, imported) };
}

function transportOf(
  provider: Provider,
  needed: readonly NeededHook[],
  exported: unknown,
  options: LoadOptions,
): SubscriberTransport {
  const { containment } = options;
  return inProcess({
    provider: provider.name,
    handlers: handlerTable(provider, needed, exported),
    config: options.config,
    log: loggerFor(provider.name, options.log),
    ...(containment === undefined ? {} : { containment }),
  });
}

async function fileUrl(provider: Provider, path: string): Promise<string> {
  try {
    const real = await realpath(path);
    if ((await stat(real)).isFile()) return pathToFileURL(real).href;
  } catch (error) {
    const missing = error instanceof Error && "code" in error && error.code === "ENOENT";
    throw loadError(provider, missing ? "there is no such file" : `the file cannot be read: ${thrownText(error)}`, {
      cause: error,
    });
  }
  throw loadError(provider, "it is not a file");
}

async function inTime(provider: Provider, importing: Promise<unknown>, timeoutMs: number): Promise<unknown> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(loadError(provider, `its import did not end within ${timeoutMs} ms`)), timeoutMs);
  });
  try {
    return await Promise.race([importing, late]);
  } catch (error) {
    if (error instanceof HookledgerError && error.code === "HL_SUBSCRIBER_LOAD") throw error;
    const hint = error instanceof SyntaxError ? { hint: "`node --check` on the file shows where." } : {};
    throw loadError(provider, `its import failed: ${thrownText(error)}`, { ...hint, cause: error });
  } finally {
    clearTimeout(timer);
  }
}

function defaultExport(provider: Provider, imported: unknown): unknown {
  if (typeof imported === "object" && imported !== null && Object.hasOwn(imported, "default")) {
    return Reflect.get(imported, "default");
  }
  throw loadError(provider, "it has no default export", { hint: "Write `export default { … }`." });
}
