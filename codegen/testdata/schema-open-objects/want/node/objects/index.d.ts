export {};

/** 3 tools of server "objects". */

/** Arguments that may be anything */
export { filter, type FilterInput } from "./filter.js";

/** Objects with and without known keys */
export { label, type LabelInput, type LabelOutput } from "./label.js";

/** Arguments with more keys than are known */
export { query, type QueryInput } from "./query.js";
