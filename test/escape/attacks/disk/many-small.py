# tries: to fill more than its share by many files, none of them large
# stopped by: each writable place counts all its files together
# want: nothing

def fill(directory):
    for i in range(64):
        with open(f"{directory}/{i}", "wb") as file:
            file.write(bytes(1 << 20))
    return f"64 MB in {directory}"
for directory in ("/tmp", "/workspace", "/dev/shm"):
    attempt(directory, lambda: fill(directory))
