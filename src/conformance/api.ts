/** What a program that checks subscribers needs of this folder. Whoever imports it loads fast-check. */

export type { Stand } from "./ask.js";
export type { Check } from "./check.js";
export { CHECKS } from "./checks/all.js";
export { writeEvidence } from "./evidence.js";
export type { Specimen } from "./explore.js";
export { openSubject } from "./open.js";
export { type Checked, type ConformOptions, conform, type Placed, reproduce } from "./run.js";
export { everyStand, servedOf } from "./served.js";
export type { Subject } from "./subject.js";
