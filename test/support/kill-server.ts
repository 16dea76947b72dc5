/** What the tests that kill wait for at the server. */
import { setImmediate } from "node:timers/promises";
import type { Double } from "./eventstoredb/double.mjs";

/** Resolves once every connection of a process that died is closed, and what came over it is dealt with. */
export async function noConnections(double: Pick<Double, "open">): Promise<void> {
  while (double.open > 0) await setImmediate();
  for (let turn = 0; turn < 10; turn++) await setImmediate();
}
