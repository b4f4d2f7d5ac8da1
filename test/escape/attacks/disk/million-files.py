# tries: to make a million files, so that the file system can make no more
# stopped by: the number of files is limited in each writable place
# want: nothing

def make(folder):
    for i in range(1_000_000):
        os.close(os.open(f"{folder}/{i}", os.O_CREAT | os.O_WRONLY))
    return f"a million files in {folder}"
for folder in ("/tmp", "/dev/shm", "/workspace"):
    attempt(folder, lambda: make(folder))
