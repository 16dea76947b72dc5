/** Every command there is, in the order in which help lists them. */
import type { CommandFile } from "./command.js";

export const COMMANDS: readonly CommandFile[] = [];
