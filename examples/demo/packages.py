# Which directories of this repository hold how much Go code? The sources pass
# through the sandbox and stay there; the only output is a table of a few lines.
import asyncio
import json
import os

from servers import files, memory

SKIP = ["node_modules", ".git", ".airlock", "bin", "testdata"]


def go_files(entries, directory):
    """Yields the path of every Go file below a directory of a directory tree."""
    for entry in entries:
        path = f"{directory}/{entry['name']}"
        if entry["type"] == "directory":
            yield from go_files(entry["children"], path)
        elif path.endswith(".go"):
            yield path


async def count_lines(path):
    """Returns a file's directory, its lines and its bytes."""
    text = (await files.read_text_file({"path": path})).data["content"]
    return os.path.dirname(path), text.count("\n"), len(text)


allowed = (await files.list_allowed_directories({})).data["content"]
root = allowed.splitlines()[1]
tree = (await files.directory_tree({"path": root, "excludePatterns": SKIP})).data["content"]
paths = list(go_files(json.loads(tree), root))
print(f"reading {len(paths)} files")

directories = {}
read = 0
for directory, lines, size in await asyncio.gather(*map(count_lines, paths)):
    name = os.path.relpath(directory, root)
    directories[name] = directories.get(name, 0) + lines
    read += size

largest = sorted(directories.items(), key=lambda item: -item[1])[:5]
await memory.create_entities({
    "entities": [
        {"name": name, "entityType": "package", "observations": [f"{lines} lines of Go"]}
        for name, lines in largest
    ]
})
graph = (await memory.read_graph({})).data

result = {
    "files": len(paths),
    "bytes_read": read,
    "largest": [{"directory": name, "lines": lines} for name, lines in largest],
    "remembered": len(graph["entities"]),
}
