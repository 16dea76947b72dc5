import { dirname, resolve } from "node:path";
import { type Diagnostics, quoted } from "./diagnostics.js";
import type { Fields } from "./fields.js";
import { type FileProbe, type FileUse, locate } from "./file-probe.js";
import { LAUNCH_ATTRIBUTES, readLaunch } from "./launch.js";
import { flag, text } from "./readers.js";
import type { ReadSettings } from "./settings.js";
import { isLoopback, type SourceForm, sourceForm } from "./source-forms.js";
import type { Source, TlsFiles } from "./types.js";

type SourceParts = {
  /** The provider's. */
  readonly name: string;
  /** Absolute: where the file that declares the provider lies. */
  readonly folder: string;
  readonly devOverrides: ReadSettings["devOverrides"];
  readonly probe: FileProbe;
  readonly report: Diagnostics;
};

const ADDRESS_ATTRIBUTES = ["tls", "insecure"];

/** The source that an entry of `required_providers` names, with the attributes that go with its kind. */
export function readSource(written: string | undefined, fields: Fields, parts: SourceParts): Source | undefined {
  const form = written === undefined ? undefined : sourceForm(written);
  if (form === undefined || form.kind === "fault") {
    if (form !== undefined) parts.report.error(fields.placeOf("source"), form.message, { hint: form.hint });
    fields.take([...ADDRESS_ATTRIBUTES, ...LAUNCH_ATTRIBUTES]);
    return undefined;
  }
  const isPlugin = form.kind === "plugin" || form.kind === "forge";
  if (form.kind !== "grpc") fields.forbid(ADDRESS_ATTRIBUTES, "is for an address (grpc:, grpcs:)");
  if (!isPlugin) fields.forbid(LAUNCH_ATTRIBUTES, "is for a plugin that hookledger starts");
  switch (form.kind) {
    case "host":
      return form;
    case "module": {
      const path = pathOf(form.path, "file", fields, parts);
      return path === undefined ? undefined : { kind: "module", path };
    }
    case "grpc":
      return readAddress(form, fields, parts);
    case "plugin": {
      const launch = readLaunch(fields);
      const path = pathOf(form.path, "executable", fields, parts);
      return path === undefined ? undefined : { kind: "plugin", path, launch };
    }
    case "forge": {
      const launch = readLaunch(fields);
      const path = installedPath(form.address, fields, parts);
      return { kind: "forge", address: form.address, ...(path !== undefined && { path }), launch };
    }
  }
}

function readAddress({ transport, target }: SourceForm & { kind: "grpc" }, fields: Fields, parts: SourceParts): Source {
  const insecure = fields.optional("insecure", flag) ?? false;
  const tls = readTls(fields, parts);
  if (transport === "tcp" && !insecure && !isLoopback(target)) {
    parts.report.error(fields.placeOf("source"), `plain TCP to ${quoted(target)} would carry payloads unprotected`, {
      hint: "use grpcs://, or set insecure = true where the network protects them",
    });
  }
  if (transport !== "tcp" && insecure) {
    parts.report.error(fields.placeOf("insecure"), "insecure is for plain TCP (grpc:)");
  }
  if (transport !== "tls" && tls !== undefined) parts.report.error(fields.placeOf("tls"), "tls is for grpcs:");
  return { kind: "grpc", transport, target, insecure, ...(tls !== undefined && { tls }) };
}

function readTls(fields: Fields, parts: SourceParts): TlsFiles | undefined {
  const tls = fields.object("tls");
  if (tls === undefined) return undefined;
  const file = (name: string) => {
    const written = tls.optional(name, text);
    return written === undefined ? undefined : locate(written, { ...parts, place: tls.placeOf(name), use: "file" });
  };
  const ca = file("ca");
  const cert = file("cert");
  const key = file("key");
  const serverName = tls.optional("server_name", text);
  if (tls.has("cert") !== tls.has("key")) {
    parts.report.error(tls.place, "tls.cert and tls.key belong together");
  }
  tls.close();
  return {
    ...(ca !== undefined && { ca }),
    ...(cert !== undefined && { cert }),
    ...(key !== undefined && { key }),
    ...(serverName !== undefined && { serverName }),
  };
}

function pathOf(written: string, use: FileUse, fields: Fields, parts: SourceParts): string | undefined {
  return locate(written, { ...parts, place: fields.placeOf("source"), use });
}

/** Where a git-forge address is installed: what `dev_overrides` says, else `.agent/plugins/<name>`. */
function installedPath(address: string, fields: Fields, parts: SourceParts): string | undefined {
  const override = parts.devOverrides.get(address);
  if (override !== undefined) {
    const folder = dirname(resolve(override.place.file));
    return locate(override.value, { ...parts, folder, place: override.place, use: "executable" });
  }
  const installed = `.agent/plugins/${parts.name}`;
  if (parts.probe.realPath(resolve(parts.folder, installed)) !== undefined) {
    return pathOf(installed, "executable", fields, parts);
  }
  parts.report.warning(fields.placeOf("source"), `${quoted(address)} is not installed`, {
    code: "HL_SOURCE_UNSUPPORTED",
    hint: `put its executable at ${installed}, or name a local build in settings { dev_overrides = { "${address}" = "./build" } }`,
  });
  return undefined;
}
