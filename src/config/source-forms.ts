import { isAbsolute } from "node:path";
import { quoted } from "./diagnostics.js";
import { nearest } from "./spelling.js";

/** A `source`, taken apart but not yet looked for. */
export type SourceForm =
  | { readonly kind: "module" | "plugin"; readonly path: string }
  | { readonly kind: "host" }
  | { readonly kind: "grpc"; readonly transport: "unix" | "tcp" | "tls"; readonly target: string }
  | { readonly kind: "forge"; readonly address: string };

type SourceFault = { readonly kind: "fault"; readonly message: string; readonly hint: string };

const ADDRESS = /^(?:\[[0-9a-fA-F:.]+\]|[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?):(\d{1,5})$/;
const LOOPBACK = /^(?:localhost|127(?:\.(?:25[0-5]|2[0-4]\d|1?\d?\d)){3}|\[(?:::1|0*(?::0*){6}:0*1)\]):\d+$/;
const FORGE = /^[a-z0-9-]+(?:\.[a-z0-9-]+)+(?:\/[A-Za-z0-9_-][A-Za-z0-9._-]*){2,}$/;
const MODULE_FILE = /\.[cm]?js$/;
const SCHEMES = ["module:", "grpc://", "grpcs://", "grpc+unix://", "host"];

/** Reads a `source` as the configuration writes it. */
export function sourceForm(source: string): SourceForm | SourceFault {
  if (/\p{Cc}/u.test(source)) return fault(source, "holds a control character", "");
  if (source === "host") return { kind: "host" };
  if (source.startsWith("module:")) return moduleForm(source, source.slice("module:".length));
  if (source.startsWith("grpc+unix://")) return socketForm(source, source.slice("grpc+unix://".length));
  if (source.startsWith("grpc://")) return addressForm(source, "tcp", source.slice("grpc://".length));
  if (source.startsWith("grpcs://")) return addressForm(source, "tls", source.slice("grpcs://".length));
  if (isPath(source)) return { kind: "plugin", path: source };
  if (FORGE.test(source)) return { kind: "forge", address: source };
  const near = nearest(/^[^:/]*:?(?:\/\/)?/.exec(source)?.[0] ?? "", SCHEMES);
  return fault(
    source,
    "is no source",
    near === undefined
      ? 'write ./path, module:./file.mjs, grpc+unix:///path.sock, grpc://host:port, grpcs://host:port, "host" or github.com/owner/name'
      : `did you mean "${near}"?`,
  );
}

export function isLoopback(target: string): boolean {
  return LOOPBACK.test(target);
}

function moduleForm(source: string, path: string): SourceForm | SourceFault {
  if (!isPath(path)) {
    return fault(source, "is not a path to a file", "after module: write a path that starts with ./, ../ or /");
  }
  if (!MODULE_FILE.test(path)) {
    return fault(source, "is not a file that Node imports", "its name must end in .mjs, .js or .cjs");
  }
  return { kind: "module", path };
}

function socketForm(source: string, path: string): SourceForm | SourceFault {
  if (!isAbsolute(path)) return fault(source, "is not the path of a socket", "write grpc+unix:///run/name.sock");
  return { kind: "grpc", transport: "unix", target: path };
}

function addressForm(source: string, transport: "tcp" | "tls", target: string): SourceForm | SourceFault {
  const port = Number(ADDRESS.exec(target)?.[1] ?? 0);
  if (port >= 1 && port <= 65_535) return { kind: "grpc", transport, target };
  const scheme = transport === "tcp" ? "grpc" : "grpcs";
  return fault(source, "is not an address", `write ${scheme}://host:port, with a port from 1 to 65535`);
}

function isPath(text: string): boolean {
  return text.startsWith("./") || text.startsWith("../") || isAbsolute(text);
}

function fault(source: string, what: string, hint: string): SourceFault {
  return { kind: "fault", message: `source ${quoted(source)} ${what}`, hint };
}
