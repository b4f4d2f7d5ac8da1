# tries: to confuse the host with an invalid result
# stopped by: a message that breaks the protocol ends the run
# want: SandboxError

broker().sendall(frame("run/finish", {"ok": False}))
time.sleep(30)
