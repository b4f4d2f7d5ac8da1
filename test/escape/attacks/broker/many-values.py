# tries: to fill the host's memory and time with arguments that take many times their bytes when they are decoded
# stopped by: of one run's arguments 4 MiB are worked on at a time, none after its end; all of them are counted
# want: Timeout
# timeout: 6s

import threading
values = [0] * 300_000
connections = []
def call_on():
    s = broker()
    connections.append(s)
    request = frame("tools/call", {"server_id": "demo", "name": "echo", "arguments": {"values": values}})
    while True:
        s.sendall(request)
for _ in range(8):
    threading.Thread(target=call_on, daemon=True).start()
time.sleep(60)
