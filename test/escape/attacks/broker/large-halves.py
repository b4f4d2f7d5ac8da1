# tries: to have the host keep many large unfinished frames in memory
# stopped by: four large frames at most are read at a time; the others wait outside
# want: Timeout
# timeout: 5s

import threading
part = b"x" * (1 << 20)
def send():
    s = broker()
    s.sendall(b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"a":"')
    for _ in range(15):
        s.sendall(part)
    time.sleep(60)
for _ in range(12):
    threading.Thread(target=send).start()
time.sleep(60)
