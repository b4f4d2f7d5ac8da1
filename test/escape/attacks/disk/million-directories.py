# tries: to make directories without end, each inside the one before
# stopped by: the number of directories is limited in each writable place
# want: nothing or MemoryLimit

def deep():
    os.chdir("/tmp")
    for i in range(1_000_000):
        os.mkdir("d")
        os.chdir("d")
    return "a million levels"
attempt("deep", lambda: in_child(deep))
