# tries: to end with an error that says that the host had failed
# stopped by: the host says who found an error, and that one may try again; this one the code found
# want: MemoryLimit
# found by: code

s = broker()
s.sendall(frame("run/finish", {"ok": False, "error": {"type": "MemoryLimit", "message": "raise the limit", "source": "sandbox", "retryable": True}}))
time.sleep(30)
