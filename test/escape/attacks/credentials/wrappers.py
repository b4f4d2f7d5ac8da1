# tries: to find a credential in the wrappers, the client, or what they keep in memory
# stopped by: a wrapper knows the names of a server and a tool; the broker adds the credential outside
# want: nothing

import gc, re
looks_secret = re.compile(
    rb"(?i)(bearer\s+[a-z0-9._-]{8}|authorization\s*[:=]\s*['\"]|api[_-]?key\s*[:=]\s*['\"]"
    rb"|sk-[a-z0-9]{16}|ghp_[a-z0-9]{16}|AKIA[A-Z0-9]{12}|-----BEGIN)")
seen = 0
for top in ("/workspace/servers", "/workspace/client"):
    for directory, _, names in os.walk(top):
        for name in names:
            data = open(os.path.join(directory, name), "rb").read()
            seen += 1
            found = looks_secret.search(data)
            if found:
                result.append(f"{directory}/{name}: {found[0]!r}")
import client.mcp_client
texts = [thing for thing in gc.get_objects() if isinstance(thing, dict) and "client" in str(thing.get("__name__", ""))]
attempt("memory",
    lambda: [str(found[0]) for found in [looks_secret.search(repr(text).encode()) for text in texts] if found] or None)
print(f"harmless: {seen} files")
