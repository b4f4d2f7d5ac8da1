export {};

/** 0 tools of server "3d". */
