# tries: to hide that policy refused the call that it ends with
# stopped by: the host knows which calls it refused and ignores the source that the code claims
# want: PolicyDenied
# found by: broker

s = broker()
refused = ask(s, frame("tools/call", {"server_id": "demo", "name": "forbidden", "arguments": {}}))["error"]
s.sendall(
    frame("run/finish",
        {"ok": False,
            "error": {
                "type": "PolicyDenied", "message": "denied", "source": "sandbox", "call_id": refused["call_id"],
                "retryable": True}}))
time.sleep(30)
