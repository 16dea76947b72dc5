/** Which provider `conformance` is to check: one of the configuration, or one that the command line makes up. */
import { open } from "node:fs/promises";
import { resolve } from "node:path";
import { parseConfig } from "../config/load.js";
import type { Config, Provider } from "../config/types.js";
import { HookledgerError } from "../errors.js";
import { readJson } from "../payload/json-text.js";
import { thrownText } from "../subscribers/fault.js";
import type { CommandCall } from "./command.js";
import { configFor, redactorFor } from "./configuration.js";

/** `text`: how the command line names it. */
export type Chosen = { readonly provider: Provider; readonly config: Config; readonly text: string };

/** Of a provider that only the command line knows. */
const NAME = "subject";
/** File of a configuration that is in no file. */
const NOWHERE = "command line";
const MAX_CONFIG_BYTES = 1024 * 1024;
const MAX_CONFIG_DEPTH = 64;

/** Throws HL_USAGE, HL_NOT_FOUND for an unknown provider, and what reading the configuration throws. */
export async function chosenProvider(call: CommandCall): Promise<Chosen> {
  const [source] = call.args;
  const name = call.text("provider");
  const body = call.text("providerConfig");
  if ((source === undefined) === (name === undefined)) {
    throw usage("conformance takes a source or --provider <name>", "For example: hookledger conformance ./my-plugin");
  }
  if (name === undefined) return fromSource(source ?? "", body);
  if (body !== undefined) throw usage("--provider-config goes with a source", "agent.hcl has the provider's own.");
  const config = await configFor(call, call.config);
  call.out.redactWith(redactorFor(config, call.host.env));
  const provider = config.providers.get(name);
  if (provider !== undefined) return { provider, config, text: provider.sourceText };
  throw new HookledgerError("HL_NOT_FOUND", `${call.config} has no provider ${JSON.stringify(name)}`, {
    hint: `It has ${[...config.providers.keys()].join(", ") || "none"}.`,
  });
}

/** Read as agent.hcl would, so that both mean the same. */
async function fromSource(source: string, bodyFile: string | undefined): Promise<Chosen> {
  const text = `required_providers {\n  ${NAME} = { source = ${hclText(absolute(source))} }\n}\n`;
  const read = await parseConfig([{ name: NOWHERE, text }]);
  const provider = read.ok ? read.config.providers.get(NAME) : undefined;
  if (!read.ok || provider === undefined) {
    const [error] = read.ok ? [] : read.errors;
    throw usage(error?.message ?? `${source} is no source`, error?.hint ?? "");
  }
  if (bodyFile === undefined) return { provider, config: read.config, text: source };
  if (provider.source.kind === "grpc") {
    throw usage("--provider-config is not for an address", "Configure it where it runs.");
  }
  return { provider: { ...provider, body: await bodyOf(bodyFile) }, config: read.config, text: source };
}

/** The folder that paths are relative to is the working one, and they may leave it: there is no configuration that they belong to. */
function absolute(source: string): string {
  const [, scheme = "", path = ""] = /^(module:)?(\.{1,2}\/.*)$/s.exec(source) ?? [];
  return path === "" ? source : scheme + resolve(path);
}

/** A quoted template without any template in it. */
function hclText(text: string): string {
  const json = JSON.stringify(text).replace(/\\([bf])/g, (_, letter) => (letter === "b" ? "\\u0008" : "\\u000c"));
  return json.replaceAll("${", "$${").replaceAll("%{", "%%{");
}

async function bodyOf(path: string): Promise<Provider["body"] & {}> {
  const text = await boundedText(path);
  const value = readJson(text, MAX_CONFIG_DEPTH);
  if (isObject(value)) return value;
  throw usage(`${path} is no JSON object`, "It stands for the body of the provider block.");
}

/** The error without a place that only this file knows of. */
export function placed(error: unknown): unknown {
  if (!(error instanceof HookledgerError) || error.place?.file !== NOWHERE) return error;
  const { code, message, hint } = error;
  return new HookledgerError(code, message, { cause: error, ...(hint === undefined ? {} : { hint }) });
}

type Json = ReturnType<typeof readJson>;

function isObject(value: Json): value is { readonly [key: string]: Json } {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

async function boundedText(path: string): Promise<string> {
  try {
    const file = await open(path);
    try {
      const buffer = Buffer.alloc(MAX_CONFIG_BYTES + 1);
      const { bytesRead } = await file.read(buffer, 0, buffer.length, null);
      if (bytesRead <= MAX_CONFIG_BYTES) {
        return new TextDecoder("utf-8", { fatal: true }).decode(buffer.subarray(0, bytesRead));
      }
    } finally {
      await file.close();
    }
  } catch (error) {
    throw usage(`${path} cannot be read: ${thrownText(error)}`, "--provider-config takes a JSON file.");
  }
  throw usage(`${path} is larger than 1 MiB`, "--provider-config takes a JSON file.");
}

function usage(message: string, hint: string): HookledgerError {
  return new HookledgerError("HL_USAGE", message, hint === "" ? {} : { hint });
}
