# tries: to let answers to every kind of question pile up on the host, on as many connections as there are
# stopped by: all connections of a run share its places for calls and its bytes of unread answers
# want: Timeout
# timeout: 8s

import threading
connections = []
def ask_on():
    s = broker()
    connections.append(s)
    for i in range(200):
        s.sendall(frame("tools/call", {"server_id": "demo", "name": "big", "arguments": {"n": i}}, id=i))
        s.sendall(frame("catalog/get", {"server_id": "demo", "name": "big"}, id=f"g{i}"))
        s.sendall(frame("catalog/search", {"query": "attacks"}, id=f"s{i}"))
for _ in range(12):
    threading.Thread(target=ask_on, daemon=True).start()
time.sleep(60)
