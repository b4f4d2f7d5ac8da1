# tries: to send signals to every process it can name, those of the host among them
# stopped by: the sandbox has separate process IDs, so only its own processes get the signals
# want: nothing

import signal
attempt("the bait", lambda: os.kill({{pid}}, signal.SIGKILL) or "killed")
for pid in list(range(100, 400)) + [1000, 5000, 20000]:
    attempt(f"process {pid}", lambda: os.kill(pid, 0) or "exists")
