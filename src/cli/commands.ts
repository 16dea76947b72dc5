/** Every command there is, in the order in which help lists them. */
import { auditExport } from "./audit-export.js";
import type { CommandFile } from "./command.js";
import { conformance } from "./conformance.js";
import { dispatch } from "./dispatch.js";
import { exportCommand } from "./export.js";
import { gc } from "./gc.js";
import { importCommand } from "./import.js";
import { init } from "./init.js";
import { list } from "./list.js";
import { queueList } from "./queue-list.js";
import { queueResolve } from "./queue-resolve.js";
import { recover } from "./recover.js";
import { replay } from "./replay.js";
import { show } from "./show.js";
import { validate } from "./validate.js";
import { verify } from "./verify.js";

export const COMMANDS: readonly CommandFile[] = [
  init,
  validate,
  dispatch,
  list,
  show,
  replay,
  verify,
  recover,
  gc,
  queueList,
  queueResolve,
  auditExport,
  exportCommand,
  importCommand,
  conformance,
];
