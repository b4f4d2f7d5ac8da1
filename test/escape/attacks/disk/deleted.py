# tries: to keep room taken by files that have no name any more
# stopped by: a file without a name counts until it is closed
# want: nothing

hoard = []
def fill():
    for i in range(64):
        file = open("/tmp/gone", "wb", buffering=0)
        os.remove("/tmp/gone")
        hoard.append(file)
        file.write(bytes(1 << 20))
    return "64 MB"
attempt("deleted files", fill)
