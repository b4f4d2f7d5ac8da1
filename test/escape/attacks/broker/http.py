# tries: to speak another protocol, in case something else listens
# stopped by: a message that breaks the protocol ends the run
# want: SandboxError

broker().sendall(b"GET /containers/json HTTP/1.1\r\nHost: docker\r\n\r\n")
time.sleep(30)
