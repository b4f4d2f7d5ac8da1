# tries: to leave fifos, sockets and odd names in the directories that the host reads
# stopped by: the writable places are memory of the sandbox, which nothing on the host ever opens
# want: nothing

for directory in ("/tmp", "/workspace", "/dev/shm"):
    os.mkfifo(directory + "/fifo")
    socket.socket(socket.AF_UNIX).bind(directory + "/socket")
    for name in (b"\xff\xfe", b"new\nline", b"-rf", b"`id`", b"\x1b[2J", "\u202e".encode(), b"x" * 255):
        open(os.fsencode(directory) + b"/" + name, "w").close()
print("harmless: they go with the sandbox")
