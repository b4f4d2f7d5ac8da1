# tries: to keep the host busy with as many requests as it can send
# stopped by: at most 64 requests are handled at a time; searches have a rate, and time is limited
# want: Timeout or nothing
# timeout: 4s

import threading
def flood():
    s = broker()
    threading.Thread(target=lambda: [s.recv(1 << 16) for _ in iter(int, 1)], daemon=True).start()
    while True:
        s.sendall(frame("catalog/search", {"query": "attacks " * 100}) * 20)
for _ in range(10):
    threading.Thread(target=flood, daemon=True).start()
time.sleep(60)
