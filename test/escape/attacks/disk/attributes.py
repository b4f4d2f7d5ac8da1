# tries: to keep data in extended attributes, which count as no file's content
# stopped by: gVisor limits attributes or counts them as memory of the sandbox
# want: nothing or MemoryLimit

open("/tmp/one", "w").close()
def fill():
    for i in range(20_000):
        os.setxattr("/tmp/one", f"user.{i}", bytes(60_000))
    return "a gigabyte of attributes"
attempt("attributes", fill)
