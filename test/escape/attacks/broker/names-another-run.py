# tries: to act for another run by naming it in a frame
# stopped by: no frame can name a run: an unknown member ends the run
# want: SandboxError

ask(broker(),
    frame("tools/call", {"server_id": "demo", "name": "echo", "arguments": {}},
        run_id="run_00000000000000000000000000000000"))
result = ["a run was named"]
