# tries: to ask for the code once more, as another program would
# stopped by: the code is handed out once; a message that breaks the protocol ends the run
# want: SandboxError

ask(broker(), frame("run/start", {}))
result = ["the code was handed out twice"]
