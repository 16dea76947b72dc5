import { readFileSync } from "node:fs";

/** Version of this package, as recorded in each event's metadata. */
export const ENGINE_VERSION: string = versionOf(readFileSync(new URL("../package.json", import.meta.url), "utf8"));

function versionOf(manifest: string): string {
  const parsed: unknown = JSON.parse(manifest);
  const version = typeof parsed === "object" && parsed !== null && "version" in parsed ? parsed.version : undefined;
  return typeof version === "string" ? version : "0.0.0";
}
