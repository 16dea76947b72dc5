/** Whole kernels over the Go plugin, in a folder of their own. */

import { copyFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { createKernel, type Kernel, type KernelOptions } from "#src/dispatch/kernel.js";
import { openStore } from "#src/store/open.js";
import type { EventStore } from "#src/store/port.js";
import { buildGoPrograms } from "./build.js";
import { type AutoMtls, type Logged, temporaryFolder } from "./lives.js";

export type Project = {
  readonly args?: readonly string[];
  readonly autoMtls?: AutoMtls;
  /** HCL of further attributes of the provider's entry. */
  readonly provider?: string;
  /** HCL of further blocks. */
  readonly blocks?: string;
  /** ms for each hook, 5 000 by default. */
  readonly timeoutMs?: number;
};

/** A configuration whose `./peerplugin` observes, transforms and vetoes; the path of its agent.hcl. */
export function projectWith({
  args = [],
  autoMtls = "auto",
  provider = "",
  blocks = "",
  timeoutMs = 5000,
}: Project = {}): string {
  const folder = temporaryFolder();
  copyFileSync(buildGoPrograms().plugin, join(folder, "peerplugin"));
  const hooks = [
    ["session-start", "observe"],
    ["pre-model-call", "transform"],
    ["pre-tool-call", "veto"],
    ["plan-ready", "veto"],
  ].map(
    ([point, mode]) => `hook "${point}" {\n  provider = "peer"\n  mode = "${mode}"\n  timeout_ms = ${timeoutMs}\n}`,
  );
  const config = join(folder, "agent.hcl");
  writeFileSync(
    config,
    `required_providers {
  peer = {
    source    = "./peerplugin"
    args      = ${JSON.stringify(args)}
    auto_mtls = "${autoMtls}"
    ${provider}
  }
}
${hooks.join("\n")}
${blocks}
`,
  );
  return config;
}

export async function kernelOn(
  config: string,
  options: Partial<KernelOptions> = {},
): Promise<{ readonly kernel: Kernel; readonly store: EventStore; readonly log: readonly Logged[] }> {
  const log: Logged[] = [];
  const store = await openStore("memory:", { mode: "write" });
  const kernel = await createKernel({
    config,
    store,
    env: { PATH: process.env["PATH"] },
    log: (line) => log.push(line),
    ...options,
  });
  onTestFinished(async () => {
    await kernel.close();
    await store.close();
  });
  return { kernel, store, log };
}
