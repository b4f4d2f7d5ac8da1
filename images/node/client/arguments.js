// Reads the arguments of calls as what they mean, in any usual spelling.

const SERVER = ["serverId", "server_id", "server", "serverName", "server_name"];
const TOOL = ["name", "toolName", "tool_name", "tool"];
const ARGUMENTS = ["arguments", "args", "params", "parameters", "input", "toolInput", "tool_input"];

/**
 * Returns `{serverId, name, args}` of a call: one object with these in any spelling,
 * or server, name and arguments one after the other.
 */
export function callOf(wanted, given) {
  const [first, second, third] = given;
  const call = isObject(first) ? { ...first } : { serverId: first };
  if (second !== undefined) call[isObject(first) ? "arguments" : "name"] = second;
  if (third !== undefined) call.arguments = third;
  const serverId = take(call, SERVER);
  const name = take(call, TOOL);
  const args = take(call, ARGUMENTS);
  for (const key of Object.keys(call)) {
    throw new TypeError(`${wanted} has no argument ${key}; it takes serverId, name, arguments`);
  }
  for (const [key, value, example] of [
    ["serverId", serverId, "crm"],
    ["name", name, "list_contacts"],
  ]) {
    if (typeof value !== "string" || !value.trim()) {
      const got = value === undefined ? "none" : JSON.stringify(value);
      throw new TypeError(`${wanted} needs ${key}, as in ${wanted}({ ${key}: "${example}", … }); it got ${got}`);
    }
  }
  return { serverId, name, args };
}

/** Returns `given` with its keys spelled as `known` spells them: `server_id` as `serverId`. */
export function respelled(given, known) {
  const spelling = new Map(known.map((key) => [plain(key), key]));
  return Object.fromEntries(Object.entries(given).map(([key, value]) => [spelling.get(plain(key)) ?? key, value]));
}

function plain(key) {
  return key.toLowerCase().replaceAll("_", "");
}

/** Removes all of `keys` from an object and returns the first value there was. */
function take(object, keys) {
  let found;
  for (const key of keys) {
    if (found === undefined) found = object[key];
    delete object[key];
  }
  return found;
}

function isObject(value) {
  return typeof value === "object" && value !== null;
}
