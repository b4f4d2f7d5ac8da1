# tries: to fill more than its share by many files, none of them large
# stopped by: each writable place counts all its files together
# want: nothing

def fill(folder):
    for i in range(64):
        with open(f"{folder}/{i}", "wb") as file:
            file.write(bytes(1 << 20))
    return f"64 MB in {folder}"
for folder in ("/tmp", "/workspace", "/dev/shm"):
    attempt(folder, lambda: fill(folder))
