# tries: to ignore every signal that asks it to end
# stopped by: the host kills the sandbox, which no signal handler sees
# want: Timeout
# timeout: 2s

import signal
for number in range(1, 65):
    try:
        signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError):
        pass
while True:
    time.sleep(10)
