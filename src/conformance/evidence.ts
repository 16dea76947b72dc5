/** What a check failed on, as a file from which it can be tried again. */

import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { HookledgerError } from "../errors.js";
import { type Payload, payloadFromJson, payloadToJson } from "../payload/payload.js";
import { sameBytes } from "../payload/wire.js";
import { thrownText } from "../subscribers/fault.js";
import type { Specimen } from "./explore.js";
import type { Placed } from "./run.js";

/** Files of one name, numbered. */
const MAX_FILES = 10_000;

/**
 * Writes a file of its own into `folder` and returns its path: `.json` where JSON can say the payload, else `.bin`, the encoded
 * payload or the bytes of the request. Never overwrites. Throws HL_USAGE where nothing can be written.
 */
export async function writeEvidence(folder: string, at: Placed, specimen: Specimen): Promise<string> {
  const { extension, content } = contentOf(specimen);
  const name = `${at.point}-${at.mode}-${at.check.name}`;
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    for (let number = 1; number <= MAX_FILES; number++) {
      const path = join(folder, `${name}${number === 1 ? "" : `-${number}`}.${extension}`);
      if (await wroteNew(path, content)) return path;
    }
  } catch (error) {
    throw new HookledgerError("HL_USAGE", `nothing can be written into ${folder}: ${thrownText(error)}`, {
      cause: error,
      hint: "Name another folder with --out.",
    });
  }
  throw new HookledgerError("HL_USAGE", `${folder} is full of ${name}-….${extension}`, { hint: "Empty it." });
}

async function wroteNew(path: string, content: string | Uint8Array): Promise<boolean> {
  try {
    await writeFile(path, content, { flag: "wx", mode: 0o600 });
    return true;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "EEXIST") return false;
    throw error;
  }
}

type Content = { readonly extension: "json" | "bin"; readonly content: string | Uint8Array };

function contentOf(specimen: Specimen): Content {
  if (specimen.kind === "request") return { extension: "bin", content: specimen.bytes };
  const { payload } = specimen;
  const text = `${JSON.stringify(payloadToJson(payload), null, 2)}\n`;
  if (says(text, payload)) return { extension: "json", content: text };
  return { extension: "bin", content: payload.bytes };
}

/** Fields that the contract does not have are lost in JSON. */
function says(text: string, payload: Payload): boolean {
  return sameBytes(payloadFromJson(text).bytes, payload.bytes);
}
