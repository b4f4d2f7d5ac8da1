# tries: to kill every process that it may, the guest among them
# stopped by: only the sandbox's own processes are there
# want: Killed or NonZeroExit

import signal
helper = subprocess.Popen(["/bin/sh", "-c", "read line"], stdin=subprocess.PIPE)
os.kill(-1, signal.SIGKILL)
helper.wait()
os.kill(os.getpid(), signal.SIGKILL)
time.sleep(60)
