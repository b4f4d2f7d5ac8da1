# tries: to take capabilities: by asking, by inheriting, by the ambient set
# stopped by: the bounding set is empty
# want: nothing
# on the host: succeeds

def hold():
    """capset(2), version 3: all capabilities, in all three sets."""
    head = ctypes.create_string_buffer(struct.pack("Ii", 0x20080522, 0))
    data = ctypes.create_string_buffer(struct.pack("IIIIII", *[0x00000001] * 6))
    syscall("capset", ctypes.addressof(head), ctypes.addressof(data))
    return "taken"
attempt("capset", lambda: in_child(hold))
for number in (0, 1, 6, 7, 12, 16, 17, 19, 21):
    attempt(f"ambient {number}", lambda: call("prctl", 47, 2, number, 0, 0) or "raised")
def held():
    sets = [line for line in open("/proc/self/status") if line.startswith("Cap") and int(line.split()[1], 16)]
    return sets or None
attempt("capabilities held", held)
