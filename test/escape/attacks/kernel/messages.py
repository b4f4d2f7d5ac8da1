# tries: to read the kernel's messages by syslog
# stopped by: gVisor returns invented messages
# want: nothing

def read():
    buffer = ctypes.create_string_buffer(1 << 16)
    n = syscall("syslog", 3, ctypes.addressof(buffer), 1 << 16)
    text = buffer.raw[:n].decode("latin-1")
    lines = [line for line in text.splitlines() if "gVisor" not in line]
    real = [line for line in lines
        if any(word in line for word in ("BIOS", "Command line", "systemd", "EXT4", "virtio", "eth0", "ACPI"))]
    print(text[:500])
    return real or None
attempt("messages", read)
