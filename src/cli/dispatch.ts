import { requireDispatchId, requireLabel } from "../dispatch/identity.js";
import type { Kernel, KernelOptions } from "../dispatch/kernel.js";
import type { DispatchResult } from "../dispatch/result.js";
import { HookledgerError } from "../errors.js";
import type { Payload } from "../payload/payload.js";
import { thrownText } from "../subscribers/fault.js";
import type { CommandCall, CommandFile } from "./command.js";
import { configFor, redactorFor } from "./configuration.js";
import { documentOfResult } from "./document.js";
import { EXIT, type ExitCode } from "./exit.js";
import { containModules, logTo } from "./modules.js";
import type { Output } from "./output.js";
import { readPayload } from "./payload-input.js";
import { foreign } from "./text.js";
import { verdictLines } from "./verdict.js";

export const dispatch: CommandFile = {
  name: "dispatch",
  summary: "dispatches one hook point live, and records it; exit 0 only if it is allowed",
  options: [
    { flags: "--payload <file>", description: "the HookPayload as proto3 JSON; - for standard input" },
    { flags: "--binary", description: "the payload is the encoded message, not JSON" },
    { flags: "--session <id>", description: "the session it belongs to" },
    { flags: "--turn <id>", description: "the turn it belongs to" },
    { flags: "--id <ulid>", description: "its id: the same one with the same payload gives the recorded result again" },
  ],
  examples: [
    { command: "hookledger dispatch --payload payloads/plan-ready.json", does: "who says what of a plan" },
    {
      command: "hookledger --json dispatch --payload - --session s-42 < payload.json",
      does: "from a harness's script",
    },
  ],
  async run(call) {
    const { out, host } = call;
    const { path, ...options } = optionsOf(call);
    const config = await configFor(call, call.config);
    out.redactWith(redactorFor(config, host.env));
    const payload = await readPayload({ path, binary: call.flag("binary"), stdin: host.stdin });
    const late = lateErrors(out);
    // Only here: what only reads ledgers starts faster without the ways to reach subscribers.
    const { createKernel } = await import("../dispatch/kernel.js");
    const kernel = await createKernel({
      config,
      store: call.store,
      env: host.env,
      recoverOnStart: false,
      log: logTo(out),
      containment: containModules(call),
      onHookError: late.report,
    });
    try {
      // Under an id of its own it may be recorded already, and then nobody is asked.
      if (options.id === undefined) await kernel.start({ points: [payload.point] });
      for (const warning of kernel.warnings) out.warn(foreign(out.redacted(warning)));
      const result = await dispatchOnce(kernel, payload, options, call);
      const code = exitCodeOf(result);
      const heard = await printResult(result, call);
      late.handOver();
      host.onInterrupt(() => out.note("waiting for detached observers; once more ends the process"));
      return heard ? code : unheard(code);
    } finally {
      await close(kernel, out);
    }
  },
};

type Asked = {
  readonly path: string;
  readonly session?: string;
  readonly turn?: string;
  readonly id?: string;
};

/** What can be judged before anything is loaded or opened. */
function optionsOf(call: CommandCall): Asked {
  const path = call.text("payload");
  if (path === undefined || path === "") {
    throw new HookledgerError("HL_USAGE", "dispatch needs --payload <file>", {
      hint: "- reads standard input; hookledger init writes a sample.",
    });
  }
  const session = requireLabel("session", call.text("session"));
  const turn = requireLabel("turn", call.text("turn"));
  const id = call.text("id");
  return {
    path,
    ...(session === undefined ? {} : { session }),
    ...(turn === undefined ? {} : { turn }),
    ...(id === undefined ? {} : { id: requireDispatchId(id) }),
  };
}

/** From here to the result, the first signal is the caller's abort, and every other end of the process is one too. */
async function dispatchOnce(
  kernel: Kernel,
  payload: Payload,
  options: Omit<Asked, "path">,
  { host, out }: CommandCall,
): Promise<DispatchResult> {
  const abort = new AbortController();
  host.onInterrupt(() => {
    out.note("cancelling; once more ends the process");
    abort.abort();
  });
  host.failWith(EXIT.aborted);
  return kernel.dispatch(payload, { ...options, signal: abort.signal });
}

/** false: nobody read it. */
async function printResult(result: DispatchResult, { out, store }: CommandCall): Promise<boolean> {
  const document = documentOfResult(result);
  if (!result.recorded) out.warn("the ledger could not be written: this dispatch is not recorded");
  if (out.json) return out.document(document);
  const { style } = out;
  const lines = verdictLines(document, style, { recorded: result.recorded });
  const canBeShown = result.recorded && store !== "memory:";
  const next = canBeShown ? [style.dim(`  hookledger show ${foreign(result.dispatchId)}`)] : [];
  return out.print([...lines, ...next].join("\n"));
}

/** The only place that comes to 0. */
function exitCodeOf(result: DispatchResult): ExitCode {
  switch (result.status) {
    case "aborted":
      return EXIT.aborted;
    case "decided":
      if (result.decision === "deny") return EXIT.denied;
      return result.allowed ? EXIT.done : EXIT.itemwise;
  }
}

/** A caller that did not hear of it has not been allowed anything. */
function unheard(code: ExitCode): ExitCode {
  return code === EXIT.done || code === EXIT.itemwise ? EXIT.aborted : code;
}

type LateErrors = { readonly report: KernelOptions["onHookError"] & {}; readonly handOver: () => void };

/** Failures that the result has are printed with it; those of detached observers come later, and are told then. */
function lateErrors(out: Output): LateErrors {
  let handedOver = false;
  return {
    report({ subscriber, mode, category, message }) {
      if (handedOver) out.warn(`${foreign(subscriber)} (${mode}) ${category}: ${foreign(message)}`);
    },
    handOver() {
      handedOver = true;
    },
  };
}

/** The result stands; what goes wrong from here on is only told. */
async function close(kernel: Kernel, out: Output): Promise<void> {
  try {
    await kernel.close();
  } catch (error) {
    out.warn(`the ledger could not be closed: ${foreign(out.redacted(thrownText(error)))}`);
  }
}
