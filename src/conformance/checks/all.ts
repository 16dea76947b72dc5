/** Every check there is, in the order in which they are run. */

import type { Check } from "../check.js";
import { answer } from "./answer.js";
import { cancellation } from "./cancellation.js";
import { concurrency } from "./concurrency.js";
import { deadline } from "./deadline.js";
import { determinism } from "./determinism.js";
import { hostile } from "./hostile.js";
import { identity } from "./identity.js";
import { sparse } from "./sparse.js";
import { unknownFields } from "./unknown-fields.js";

export const CHECKS: readonly Check[] = [
  answer,
  sparse,
  identity,
  unknownFields,
  determinism,
  deadline,
  cancellation,
  concurrency,
  hostile,
];
