# tries: to make a million files, so that the file system can make no more
# stopped by: the number of files is limited in each writable place
# want: nothing

def make(directory):
    for i in range(1_000_000):
        os.close(os.open(f"{directory}/{i}", os.O_CREAT | os.O_WRONLY))
    return f"a million files in {directory}"
for directory in ("/tmp", "/dev/shm", "/workspace"):
    attempt(directory, lambda: make(directory))
