export {};

/** 11 tools of server "files". */

/** What the functions throw: a tool call that failed. */
export { ToolError } from "../../client/mcp_client.js";

/** The tool whose own name is aB */
export { aB, type ABInput } from "./aB.js";

/** The tool whose own name is a_b_c */
export { aBC_b3f2d2, aBC_b3f2d2 as a_b_c, type ABC_b3f2d2Input } from "./aBC_b3f2d2.js";

/** The tool whose own name is a.b */
export { aB_2e7336, type AB_2e7336Input } from "./aB_2e7336.js";

/** The tool whose own name is a_b */
export { aB_648fa9, aB_648fa9 as a_b, type AB_648fa9Input } from "./aB_648fa9.js";

/** The tool whose own name is a-b */
export { aB_d44362, type AB_d44362Input } from "./aB_d44362.js";

/** The tool whose own name is aBC */
export { aBc, aBc as aBC, type ABcInput } from "./aBc.js";

/** The tool whose own name is get */
export { get, type GetInput } from "./get.js";

/** The tool whose own name is getURLList */
export { getUrlList, getUrlList as getURLList, type GetUrlListInput } from "./getUrlList.js";

/** The tool whose own name is Get */
export { get_5fb9c3, get_5fb9c3 as Get, type Get_5fb9c3Input } from "./get_5fb9c3.js";

/** The tool whose own name is http_server */
export { httpServer_0f29f3, httpServer_0f29f3 as http_server, type HttpServer_0f29f3Input } from "./httpServer_0f29f3.js";

/** The tool whose own name is HTTPServer */
export { httpServer_7e64db, httpServer_7e64db as HTTPServer, type HttpServer_7e64dbInput } from "./httpServer_7e64db.js";
