/** An append on its way through a lane: answered once, at the latest by its own deadline. */
import { HookledgerError } from "../../errors.js";
import { firstRevision } from "../append.js";
import type { AppendRequest, AppendResult, StreamName } from "../port.js";
import type { Kept } from "./archive/writer.js";

export type Job = {
  readonly request: AppendRequest;
  readonly resolve: (result: AppendResult) => void;
  readonly reject: (error: HookledgerError) => void;
  /** ms from now on in which it has to be answered. */
  readonly ms: number;
};

export type Task = Job & {
  readonly first: number;
  timer: NodeJS.Timeout | undefined;
  answered: boolean;
  /** null: it has no payloads of its own; undefined: they are not kept yet. */
  kept: Kept | null | undefined;
  /** undefined: not begun, or it failed. */
  enlisted: Promise<void> | undefined;
  flying: boolean;
  /** An attempt ended without the server saying what became of it. */
  doubtful: boolean;
  contradictions: number;
  last: HookledgerError | undefined;
};

/** `late` is called when the deadline is over and it was not answered. */
export function taskOf(job: Job, late: (task: Task) => void): Task {
  const { blobs = [], expected } = job.request;
  const task: Task = {
    ...job,
    first: firstRevision(expected),
    timer: undefined,
    answered: false,
    kept: blobs.length === 0 ? null : undefined,
    enlisted: expected === "none" ? undefined : Promise.resolve(),
    flying: false,
    doubtful: false,
    contradictions: 0,
    last: undefined,
  };
  task.timer = setTimeout(() => late(task), job.ms);
  return task;
}

export function answer(task: Task, result: AppendResult): void {
  if (task.answered) return;
  task.answered = true;
  clearTimeout(task.timer);
  task.resolve(result);
}

export function refuse(task: Task, error: HookledgerError): void {
  if (task.answered) return;
  task.answered = true;
  clearTimeout(task.timer);
  task.reject(error);
}

export function inDoubt({ last }: Task, stream: StreamName): HookledgerError {
  const why = last === undefined ? "it was not answered in time" : last.message;
  return new HookledgerError(
    "HL_STORE_AMBIGUOUS",
    `it is not known whether an append to ${stream} was written: ${why}`,
    {
      hint: "Read the stream back, or repeat the identical append.",
    },
  );
}

export function notWritten({ last }: Task, stream: StreamName): HookledgerError {
  if (last?.code === "HL_STORE_UNAVAILABLE") return last;
  const why = last === undefined ? "what was before it was not answered in time" : last.message;
  return new HookledgerError("HL_STORE_UNAVAILABLE", `an append to ${stream} was not written: ${why}`);
}

export function asStoreError(error: unknown, stream: StreamName): HookledgerError {
  if (error instanceof HookledgerError) return error;
  if (error instanceof SyntaxError) return new HookledgerError("HL_USAGE", `an event for ${stream} is no JSON`);
  return new HookledgerError("HL_INTERNAL", `an append to ${stream} failed in a way that was not foreseen`, {
    cause: error,
  });
}
