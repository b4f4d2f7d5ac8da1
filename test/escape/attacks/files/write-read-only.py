# tries: to change the image, the client, the wrappers or the socket's directory
# stopped by: everything but the three writable places is mounted read-only, and the file server refuses writes
# want: nothing

for directory in (
    "/", "/etc", "/usr", "/usr/bin", "/opt/airlock", "/run", "/run/airlock", "/workspace/servers", "/workspace/client",
    "/var", "/dev", "/sys", "/proc"):
    attempt(f"new file in {directory}", lambda: open(directory + "/evil", "w") and "written")
    attempt(f"new directory in {directory}", lambda: os.mkdir(directory + "/evil-directory") or "made")
for path in (
    "/etc/passwd", "/usr/bin/python3", "/opt/airlock/guest/main.py", "/workspace/client/__init__.py",
    "/run/airlock/broker.sock"):
    attempt(f"open {path}", lambda: os.open(path, os.O_WRONLY))
    attempt(f"truncate {path}", lambda: os.truncate(path, 0) or "cut")
    attempt(f"remove {path}", lambda: os.remove(path) or "gone")
    attempt(f"rename {path}", lambda: os.rename(path, path + ".old") or "renamed")
    attempt(f"chmod {path}", lambda: os.chmod(path, 0o777) or "changed")
    attempt(f"touch {path}", lambda: os.utime(path) or "touched")
    attempt(f"xattr {path}", lambda: os.setxattr(path, "user.evil", b"1") or "set")
