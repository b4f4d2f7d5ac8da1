# tries: to move or remove the folders that others mount into the workspace
# stopped by: a mount point cannot be moved or removed
# want: nothing

for folder in ("/workspace/servers", "/workspace/client"):
    attempt(f"rename {folder}", lambda: os.rename(folder, folder + "-old") or "renamed")
    attempt(f"remove {folder}", lambda: os.rmdir(folder) or "removed")
    attempt(f"replace {folder}", lambda: os.symlink("/tmp", folder) or "replaced")
