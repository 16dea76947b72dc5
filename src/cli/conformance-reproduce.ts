/** The command line that tries one check again, on what it failed on. */
import type { Placed } from "../conformance/run.js";
import type { CommandCall } from "./command.js";
import { shellWord } from "./shell-word.js";

type Failed = Placed & { readonly payloadFile: string; readonly seed: number };

export function reproduceCommand(call: CommandCall, { point, mode, check, payloadFile, seed }: Failed): string {
  const kept = ["provider", "providerConfig", "timeout"].flatMap((name) => {
    const value = call.text(name);
    return value === undefined ? [] : [OPTIONS.get(name) ?? "", value];
  });
  const words = [
    "hookledger",
    ...(call.text("config") === undefined ? [] : ["--config", call.config]),
    "conformance",
    ...call.args,
    ...kept,
    ...["--point", point, "--mode", mode, "--check", check.name, "--seed", String(seed), "--payload", payloadFile],
  ];
  return words.map(shellWord).join(" ");
}

const OPTIONS: ReadonlyMap<string, string> = new Map([
  ["provider", "--provider"],
  ["providerConfig", "--provider-config"],
  ["timeout", "--timeout"],
]);
