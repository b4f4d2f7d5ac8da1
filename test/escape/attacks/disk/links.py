# tries: to make names without end for one file, which take room but no file
# stopped by: every name counts as a file, or links are limited
# want: nothing or MemoryLimit

def make(link):
    for i in range(100_000):
        link(f"/tmp/{'x' * 200}{i}")
    return "a hundred thousand names"
open("/tmp/one", "w").close()
attempt("symbolic links", lambda: make(lambda name: os.symlink("y" * 4000, name)))
attempt("hard links", lambda: make(lambda name: os.link("/tmp/one", name)))
