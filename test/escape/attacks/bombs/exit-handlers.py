# tries: to go on for ever when it is asked to exit
# stopped by: the time limit of the run includes its exit handlers
# want: nothing or Timeout
# timeout: 3s

import atexit, threading
def never():
    while True:
        time.sleep(1)
atexit.register(never)
threading.Thread(target=never).start()
print("harmless: the result is delivered, then the sandbox goes")
