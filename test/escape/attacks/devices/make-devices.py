# tries: to make device files, before and after it is root of a namespace
# stopped by: making them needs CAP_MKNOD in the first user namespace; the writable places are mounted nodev
# want: nothing

import stat
def make(directory, kind, major, minor, inside):
    if inside:
        syscall("unshare", 0x10000000 | 0x00020000)
    path = f"{directory}/device-{kind}-{major}-{minor}"
    os.mknod(path, kind | 0o666, os.makedev(major, minor))
    return os.read(os.open(path, os.O_RDONLY), 16)
for directory in ("/tmp", "/workspace", "/dev/shm"):
    for kind, major, minor in ((stat.S_IFBLK, 8, 0), (stat.S_IFBLK, 254, 0), (stat.S_IFCHR, 1, 1),
        (stat.S_IFCHR, 10, 232)):
        for inside in (False, True):
            attempt(f"{directory} {major}:{minor} {inside}",
                lambda: in_child(lambda: make(directory, kind, major, minor, inside)))
