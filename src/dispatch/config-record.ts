import type { Config } from "../config/types.js";
import { canonicalJson, type Json } from "../payload/canonical-json.js";
import { digest } from "../payload/digest.js";
import type { Redactor } from "../payload/redaction.js";
import type { Blob } from "../store/port.js";

/** The configuration as it is archived under `started.configDigest`: env() as written, and what `redact` matches taken out. */
export function recordedConfig(config: Config, redactor: Redactor): Blob {
  const text = redactor.active ? canonicalJson(redacted(JSON.parse(config.canonical), redactor)) : config.canonical;
  return { digest: digest("config", text), bytes: new TextEncoder().encode(text) };
}

/** Of a JSON value; keys stay, they are names of the schema or of the operator. */
function redacted(value: unknown, redactor: Redactor): Json {
  switch (typeof value) {
    case "string":
      return redactor.text(value);
    case "number":
    case "boolean":
      return value;
    default:
      if (value === null || value === undefined) return null;
      if (Array.isArray(value)) return value.map((item) => redacted(item, redactor));
      return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, redacted(member, redactor)]));
  }
}
