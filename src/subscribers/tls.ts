/** TLS credentials of a `grpcs://` address. Nothing is taken from the environment. */

import { readFile } from "node:fs/promises";
import { createSecureContext } from "node:tls";
import { ChannelCredentials } from "@grpc/grpc-js";
import type { Provider, TlsFiles } from "../config/types.js";
import { HookledgerError } from "../errors.js";

/**
 * Without `ca`, Node's own roots decide. Throws HL_SUBSCRIBER_LOAD when a file is unreadable, is no PEM of its kind, or a
 * certificate comes without its key.
 */
export async function tlsCredentials(provider: Provider, files: TlsFiles): Promise<ChannelCredentials> {
  const [ca, cert, key] = await Promise.all([
    pem(provider, "ca", files.ca),
    pem(provider, "cert", files.cert),
    pem(provider, "key", files.key),
  ]);
  if ((cert === undefined) !== (key === undefined)) {
    throw refused(provider, "tls.cert and tls.key are only of use together");
  }
  try {
    const context = createSecureContext({
      minVersion: "TLSv1.2",
      ...(ca === undefined ? {} : { ca }),
      ...(cert === undefined ? {} : { cert }),
      ...(key === undefined ? {} : { key }),
    });
    return ChannelCredentials.createFromSecureContext(context);
  } catch (error) {
    throw refused(provider, `its TLS files cannot be used: ${reason(error)}`, error);
  }
}

async function pem(
  provider: Provider,
  name: "ca" | "cert" | "key",
  path: string | undefined,
): Promise<Buffer | undefined> {
  if (path === undefined) return undefined;
  try {
    return await readFile(path);
  } catch (error) {
    throw refused(provider, `tls.${name} cannot be read: ${reason(error)}`, error);
  }
}

function refused(provider: Provider, what: string, cause?: unknown): HookledgerError {
  return new HookledgerError("HL_SUBSCRIBER_LOAD", `provider "${provider.name}": ${what}`, {
    place: provider.place,
    cause,
  });
}

function reason(error: unknown): string {
  return error instanceof Error ? error.message : "unknown error";
}
