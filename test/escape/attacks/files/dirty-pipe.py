# tries: to write into a read-only file through the pages that splice leaves in a pipe (CVE-2022-0847)
# stopped by: gVisor's pipes own copies; the file server has the file open for reading only
# want: nothing

path = "/etc/passwd"
before = open(path, "rb").read()
def splice():
    read, write = os.pipe()
    os.write(write, bytes(65536))
    os.read(read, 65536)
    os.splice(os.open(path, os.O_RDONLY), write, 1, offset_src=0)
    os.write(write, b"evil:x:0:0")
    return None
attempt("splice", splice)
attempt("the file has changed", lambda: None if open(path, "rb").read() == before else "changed")
