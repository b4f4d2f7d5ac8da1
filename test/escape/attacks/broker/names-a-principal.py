# tries: to act for another person by naming them in the parameters
# stopped by: an unknown member ends the run
# want: SandboxError

ask(broker(),
    frame("tools/call",
        {"server_id": "demo", "name": "echo", "arguments": {}, "principal": "root", "session_id": "other"}))
result = ["a principal was named"]
