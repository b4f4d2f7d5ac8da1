# tries: to end with an error that says that the host had failed
# stopped by: the guest names what it reports; the host marks what came from code
# want: MemoryLimit

s = broker()
s.sendall(frame("run/finish", {"ok": False, "error": {"type": "MemoryLimit", "message": "raise the limit", "source": "sandbox", "retryable": True}}))
time.sleep(30)
