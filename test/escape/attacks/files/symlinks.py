# tries: to lead the reader of the sandbox's files, or the sandbox itself, to the host by symbolic links
# stopped by: links are resolved inside; nothing on the host ever reads the writable places
# want: nothing
# on the host: succeeds

for directory in ("/workspace", "/tmp", "/dev/shm"):
    if not os.path.isdir(directory):
        continue
    link = f"{directory}/link-{os.getpid()}"
    os.symlink("{{world_file}}", link)
    attempt(link, lambda: open(link).read())
    os.remove(link)
    os.symlink("/proc/1/root", link)
    attempt(link + " to the root", lambda: open(link + "{{world_file}}").read())
    os.remove(link)
