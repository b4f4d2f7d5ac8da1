# tries: to open files without end
# stopped by: the number of open files is limited per process
# want: nothing

hoard = []
def open_all():
    while True:
        hoard.append(os.open("/dev/null", os.O_RDONLY))
        if len(hoard) > 1024:
            return f"{len(hoard)} files"
attempt("open", open_all)
