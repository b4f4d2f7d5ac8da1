# tries: to move or remove the directories that others mount into the workspace
# stopped by: a mount point cannot be moved or removed
# want: nothing

for directory in ("/workspace/servers", "/workspace/client"):
    attempt(f"rename {directory}", lambda: os.rename(directory, directory + "-old") or "renamed")
    attempt(f"remove {directory}", lambda: os.rmdir(directory) or "removed")
    attempt(f"replace {directory}", lambda: os.symlink("/tmp", directory) or "replaced")
