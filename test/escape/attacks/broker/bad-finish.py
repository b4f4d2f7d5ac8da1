# tries: to confuse the host with a result that is no result
# stopped by: what breaks the protocol ends the run
# want: SandboxError

broker().sendall(frame("run/finish", {"ok": False}))
time.sleep(30)
