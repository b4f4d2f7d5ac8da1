# tries: to leave fifos, sockets and odd names where the host might stumble over them
# stopped by: the writable places are memory of the sandbox, which nothing on the host ever opens
# want: nothing

for folder in ("/tmp", "/workspace", "/dev/shm"):
    os.mkfifo(folder + "/fifo")
    socket.socket(socket.AF_UNIX).bind(folder + "/socket")
    for name in (b"\xff\xfe", b"new\nline", b"-rf", b"`id`", b"\x1b[2J", "\u202e".encode(), b"x" * 255):
        open(os.fsencode(folder) + b"/" + name, "w").close()
print("harmless: they go with the sandbox")
