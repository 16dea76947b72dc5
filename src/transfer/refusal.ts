import type { StreamName } from "../store/port.js";

/** A dispatch that was not copied; what is there of it stays as it is. */
export type Refusal = {
  readonly dispatchId: string;
  readonly code: "HL_BUNDLE" | "HL_IMPORT_CONFLICT";
  readonly message: string;
};

export function refusal(stream: StreamName, code: Refusal["code"], message: string): Refusal {
  return { dispatchId: stream.slice("hookdispatch-".length), code, message };
}
