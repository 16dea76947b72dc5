import type { Config } from "../config/types.js";
import { canonicalJson } from "../payload/canonical-json.js";
import { digest } from "../payload/digest.js";
import type { Redactor } from "../payload/redaction.js";
import type { Blob } from "../store/port.js";

/** The configuration as it is archived under `started.configDigest`: env() as written, and what `redact` matches taken out. */
export function recordedConfig({ canonical }: Pick<Config, "canonical">, redactor: Redactor): Blob {
  const text = redactor.active ? canonicalJson(redactor.json(JSON.parse(canonical))) : canonical;
  return { digest: digest("config", text), bytes: new TextEncoder().encode(text) };
}
