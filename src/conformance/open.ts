/** From a provider of a configuration to a subject that can be checked. */

import { resolveEnv } from "../config/env.js";
import type { Provider } from "../config/types.js";
import { HookledgerError } from "../errors.js";
import { connectGrpc } from "../subscribers/grpc.js";
import { loadError } from "../subscribers/handler-table.js";
import type { HookConfig } from "../subscribers/handlers.js";
import type { LogSink } from "../subscribers/log.js";
import { isPeer, type PeerTransport } from "../subscribers/peer.js";
import { checkPeer } from "../subscribers/peer-checks.js";
import { isPlugin, type PluginProvider, pluginOf } from "../subscribers/plugin/plugin-of.js";
import { attachedTo, readAttachments } from "../subscribers/plugin/reattach.js";
import type { PeerDescription } from "../subscribers/plugin-info.js";
import type { Stand } from "./ask.js";
import { moduleSubject } from "./module-subject.js";
import { everyStand } from "./served.js";
import type { Subject } from "./subject.js";

export type OpenParts = {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly log: LogSink;
  /** Takes out of what plugins say what must not be shown. */
  readonly redact?: (text: string) => string;
  /** bytes */
  readonly maxMessageBytes: number;
};

/** ms */
const DESCRIBE_TIMEOUT_MS = 5_000;

/**
 * Loads, connects to or starts it. Throws HL_SUBSCRIBER_LOAD (also where nobody answers at an address), HL_PLUGIN_START,
 * HL_SOURCE_UNSUPPORTED, HL_ENV_UNSET and HL_USAGE.
 */
export async function openSubject(provider: Provider, parts: OpenParts): Promise<Subject> {
  const { body } = resolveEnv(provider, parts.env);
  const attachment = readAttachments(parts.env).get(provider.name);
  if (attachment !== undefined && isPlugin(provider)) return addressSubject(attachedTo(provider, attachment), parts);
  switch (provider.source.kind) {
    case "module":
      return moduleSubject({ ...provider, body: {} }, body, parts.log);
    case "grpc":
      return addressSubject(provider, parts);
    case "plugin":
    case "forge":
      if (!isPlugin(provider)) throw new HookledgerError("HL_INTERNAL", `"${provider.name}" is no plugin`);
      return pluginSubject(provider, body, parts);
    case "host":
      throw new HookledgerError(
        "HL_SOURCE_UNSUPPORTED",
        `provider "${provider.name}" is bound by the program that embeds it`,
        {
          place: provider.place,
          hint: "Move its handlers to a module, and check that.",
        },
      );
  }
}

async function addressSubject(provider: Provider, { maxMessageBytes }: OpenParts): Promise<Subject> {
  const transport = await connectGrpc(provider, { maxMessageBytes });
  const reach = async () => transport;
  return peerSubject(provider, transport, { reach, close: () => transport.close() });
}

async function pluginSubject(provider: PluginProvider, body: HookConfig, parts: OpenParts): Promise<Subject> {
  const { cookie } = resolveEnv(provider, parts.env);
  const describeTimeoutMs = DESCRIBE_TIMEOUT_MS;
  const plugin = await pluginOf(provider, [], { ...parts, body, cookie, describeTimeoutMs });
  const close = () => plugin.close();
  // Started again at once, however often it ends: that is what is looked at.
  const reach = async () => {
    await plugin.startNow();
    return plugin.now.transport;
  };
  const transport = await reach();
  if (plugin.fault === null && isPeer(transport)) {
    return peerSubject(provider, transport, { reach, close });
  }
  await close();
  throw plugin.fault ?? loadError(provider, "it did not start");
}

type Held = Pick<Subject, "reach" | "close">;

async function peerSubject(provider: Provider, peer: PeerTransport, { reach, close }: Held): Promise<Subject> {
  try {
    const description = await peer.describe(DESCRIBE_TIMEOUT_MS);
    if (description === "absent") throw loadError(provider, "nobody answers there");
    if (description !== null) checkPeer(provider, [], description);
    return {
      stands: standsOf(description),
      isExplicit: false,
      reach,
      async exchange(request, timeoutMs) {
        const transport = await reach();
        return (isPeer(transport) ? transport : peer).exchange(request, timeoutMs);
      },
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

/** A peer that does not name any point may serve them all. */
function standsOf(description: PeerDescription | null): readonly Stand[] {
  const points = description?.supportedHookPoints ?? [];
  return everyStand().filter(({ point }) => points.length === 0 || points.includes(point));
}
