# tries: to ask for large answers and never read them, so that they pile up on the host
# stopped by: an answer keeps its place among the 16 calls of a run until it is read; 32 MiB of them may wait
# want: Timeout
# timeout: 4s

s = broker()
for i in range(200):
    s.sendall(frame("tools/call", {"server_id": "demo", "name": "big", "arguments": {"n": i}}, id=i))
time.sleep(60)
