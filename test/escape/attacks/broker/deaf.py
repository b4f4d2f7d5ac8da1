# tries: to ask for large answers and never read them, so that they pile up on the host
# stopped by: at most 64 requests are handled at a time and what they return is counted; the run's time is limited
# want: Timeout
# timeout: 4s

s = broker()
for i in range(200):
    s.sendall(frame("tools/call", {"server_id": "demo", "name": "big", "arguments": {"n": i}}, id=i))
time.sleep(60)
