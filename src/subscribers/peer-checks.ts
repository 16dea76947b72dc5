/** What a peer says of itself, against what the configuration asks of it. */

import type { Provider } from "../config/types.js";
import { parseConstraint, satisfies } from "../config/version.js";
import type { Producer } from "../core/events.js";
import { loadError, type NeededHook } from "./handler-table.js";
import type { PeerDescription } from "./plugin-info.js";

/** Throws HL_SUBSCRIBER_LOAD: a point that it does not support, a version that does not fit. */
export function checkPeer(provider: Provider, needed: readonly NeededHook[], description: PeerDescription): void {
  const supported = description.supportedHookPoints;
  const missing = needed.find(({ point }) => supported.length > 0 && !supported.includes(point));
  if (missing !== undefined) throw loadError(provider, `the peer does not support ${missing.point}`);
  if (provider.version === undefined) return;
  const constraint = parseConstraint(provider.version);
  if (constraint === null) throw loadError(provider, `"${provider.version}" is no version constraint`);
  const told = description.version === "" ? "no version" : `version "${description.version}"`;
  if (satisfies(description.version, constraint) !== true) {
    throw loadError(provider, `the peer has ${told}, and ${provider.version} is required`);
  }
}

/** The producer with what the peer tells of itself. */
export function toldBy({ version, category }: PeerDescription, producer: Producer): Producer {
  return {
    ...producer,
    ...(version === "" ? {} : { version }),
    ...(category === undefined ? {} : { category }),
  };
}

/** Who does not tell its version is taken as it is; null where nothing was to be compared. */
export function uncheckedVersion({ name, version }: Provider): string | null {
  return version === undefined
    ? null
    : `provider "${name}": version ${version} is not checked, the peer does not tell its own`;
}
