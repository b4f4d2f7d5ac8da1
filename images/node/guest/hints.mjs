// Says how to repair code that failed for a reason that is common in here.
//
// - hints_names.mjs: names that do not exist, wrappers and modules under other names;
// - hints_values.mjs: results of calls;
// - hints_sandbox.mjs: files, packages, the network and whatever else is not in here;
// - hints_syntax.mjs: code that does not parse.

import { ADVISERS as names } from "./hints_names.mjs";
import { ADVISERS as sandbox } from "./hints_sandbox.mjs";
import { ADVISERS as syntax, syntaxLocation } from "./hints_syntax.mjs";
import { ADVISERS as values } from "./hints_values.mjs";

export { syntaxLocation };

const ADVISERS = [...syntax, ...sandbox, ...names, ...values];

/** Returns advice on what was thrown by `code`, or "". */
export function hint(thrown, message, code) {
  for (const advise of ADVISERS) {
    const advice = advise(thrown, message, code);
    if (advice) return advice;
  }
  return "";
}
