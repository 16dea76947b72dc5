import { buildGoPrograms } from "./build.js";

/** Once for all test files: they find what was built. */
export function setup(): void {
  buildGoPrograms();
}
