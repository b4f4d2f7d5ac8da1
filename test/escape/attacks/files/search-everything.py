# tries: to find the flag in any file that can be read, from the root downwards
# stopped by: of the host's directories only the image, the wrappers and the run's own socket directory are there
# want: nothing

seen = 0
for directory, directories, names in os.walk("/"):
    if directory == "/":
        directories[:] = [name for name in directories if name not in ("proc", "sys", "dev")]
    for name in names:
        path = os.path.join(directory, name)
        try:
            if not os.path.isfile(path) or os.path.getsize(path) > 200_000:
                continue
            data = open(path, "rb").read()
        except OSError:
            continue
        seen += 1
        at = data.find(b"flag ")
        while at >= 0:
            word = data[at:at + 21]
            if word[5:].isalnum() and all(c in b"0123456789abcdef" for c in word[5:]):
                result.append(f"{path}: {word.decode()}")
            at = data.find(b"flag ", at + 1)
print(f"harmless: {seen} files")
