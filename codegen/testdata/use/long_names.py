"""The function has the whole name, whatever its file is called."""

import os

import servers.files as files

assert max(map(len, files.__all__)) > 128
for name in files.__all__:
    assert getattr(files, name).__name__ == name
assert all(len(name) <= 100 for name in os.listdir("servers/files"))
