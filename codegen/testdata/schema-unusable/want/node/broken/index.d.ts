export {};

/** 5 tools of server "broken". */

/** What the functions throw: a tool call that failed. */
export { ToolError } from "../../client/mcp_client.js";

/** Nested too deep */
export { deep, type DeepInput } from "./deep.js";

/** Its properties are no schemas */
export { notASchema, notASchema as not_a_schema, type NotASchemaInput } from "./notASchema.js";

/** No schema at all */
export { number, type NumberInput } from "./number.js";

/** Keywords of the wrong kind */
export { odd, type OddInput } from "./odd.js";

/** A type that does not exist */
export { unknownType, unknownType as unknown_type, type UnknownTypeInput } from "./unknownType.js";
