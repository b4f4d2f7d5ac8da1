// Which modules do this repository's Go files import most? Every source is read
// inside the sandbox; one small table leaves it.
import * as everything from "./servers/everything/index.js";
import * as files from "./servers/files/index.js";

const skip = ["node_modules", ".git", ".airlock", "bin", "testdata"];

/** Yields the path of every Go file below a directory of a directory tree. */
function* goFiles(entries, directory) {
  for (const entry of entries) {
    const path = `${directory}/${entry.name}`;
    if (entry.type === "directory") yield* goFiles(entry.children, path);
    else if (path.endsWith(".go")) yield path;
  }
}

/** Returns the import paths of one Go source. */
function imports(source) {
  const block = /^import \(([^)]*)\)/m.exec(source)?.[1] ?? "";
  return [...block.matchAll(/"([^"]+)"/g)].map((match) => match[1]);
}

const allowed = (await files.listAllowedDirectories({})).data.content;
const root = allowed.split("\n")[1];
const tree = (await files.directoryTree({ path: root, excludePatterns: skip })).data.content;
const paths = [...goFiles(JSON.parse(tree), root)];
console.log(`reading ${paths.length} files`);

const sources = await Promise.all(paths.map(async (path) => (await files.readTextFile({ path })).data.content));
const counts = new Map();
for (const path of sources.flatMap(imports)) counts.set(path, (counts.get(path) ?? 0) + 1);
const ranking = [...counts].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)).slice(0, 5);

// Another server adds up, to show that one program can use several.
const [first, second] = ranking.map(([, count]) => count);
const sum = await everything.getSum({ a: first, b: second });

globalThis.result = {
  files: paths.length,
  bytes_read: sources.reduce((total, source) => total + source.length, 0),
  most_imported: ranking.map(([path, count]) => ({ path, count })),
  first_two: sum.data,
};
