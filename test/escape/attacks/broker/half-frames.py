# tries: to keep the host waiting for the rest of frames, on every connection
# stopped by: the run's time is limited; waiting costs the host a bounded buffer
# want: Timeout
# timeout: 3s

hoard = []
for _ in range(12):
    s = broker()
    s.sendall(b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"a":"')
    hoard.append(s)
time.sleep(60)
