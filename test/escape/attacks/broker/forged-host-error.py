# tries: to end with an error that blames the host
# stopped by: the host sets the origin of an error and whether it is retryable; here the origin is the code
# want: MemoryLimit
# found by: code

s = broker()
s.sendall(
    frame("run/finish",
        {"ok": False,
            "error": {"type": "MemoryLimit", "message": "raise the limit", "source": "sandbox", "retryable": True}}))
time.sleep(30)
