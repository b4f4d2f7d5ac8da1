# tries: to make hard links of read-only files in a writable directory
# stopped by: links do not cross file systems, and the image is read-only
# want: nothing

for source in ("/etc/passwd", "/workspace/client/__init__.py", "/run/airlock/broker.sock", "/usr/bin/python3"):
    attempt(source, lambda: os.link(source, "/tmp/hard") or "linked")
