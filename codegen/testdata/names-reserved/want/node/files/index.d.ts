export {};

/**
 * 24 tools of server "files".
 * Left out: tool "-" has the function __3973e0: its name holds nothing but separators
 * Left out: tool "_" has the function _: its name holds nothing but separators
 */

/** The tool _ */
export { _, type _Input } from "./_.js";

/** The tool _3d */
export { _3d, type _3dInput } from "./_3d.js";

/** The tool 3d */
export { _3d_da0568, type _3d_da0568Input } from "./_3d_da0568.js";

/** The tool - */
export { __3973e0, type __3973e0Input } from "./__3973e0.js";

/** The tool arguments */
export { arguments_, type ArgumentsInput } from "./arguments_.js";

/** The tool print */
export { attach, type AttachInput } from "./attach.js";

/** The tool class_ */
export { class_, type ClassInput } from "./class_.js";

/** The tool class */
export { class__088911, type Class_088911Input } from "./class__088911.js";

/** The tool delete */
export { delete_, type DeleteInput } from "./delete_.js";

/** The tool get */
export { get, type Get_2998b3Input } from "./get.js";

/** The tool GetInput */
export { getInput, getInput as GetInput, type GetInputInput } from "./getInput.js";

/** The tool index */
export { index, type IndexInput } from "./index_1bc04b.js";

/** The tool __init__ */
export { init, init as __init__, type InitInput } from "./init.js";

/** The tool invoke */
export { invoke, type InvokeInput } from "./invoke.js";

/** The tool _invoke */
export { invoke_c8dc93, invoke_c8dc93 as _invoke, type Invoke_c8dc93Input } from "./invoke_c8dc93.js";

/** The tool __path__ */
export { path, path as __path__, type PathInput } from "./path.js";

/** The tool print */
export { print, type PrintInput } from "./print.js";

/** The tool __proto__ */
export { proto, proto as __proto__, type ProtoInput } from "./proto.js";

/** The tool _Server */
export { server, server as _Server, type ServerInput } from "./server.js";

/** The tool SERVER_ID */
export { serverId, serverId as SERVER_ID, type ServerIdInput } from "./serverId.js";

/** The tool then */
export { then_, type ThenInput } from "./then_.js";

/** The tool print */
export { toolError, toolError as ToolError, type ToolErrorInput } from "./toolError.js";

/** The tool TYPE_CHECKING */
export { typeChecking, typeChecking as TYPE_CHECKING, type TypeCheckingInput } from "./typeChecking.js";

/** The tool undefined */
export { undefined_, type UndefinedInput } from "./undefined_.js";
