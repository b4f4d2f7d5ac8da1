# tries: to go on for ever when it is asked to exit
# stopped by: the run's time is limited, whatever the program does at its end
# want: nothing or Timeout
# timeout: 3s

import atexit, threading
def never():
    while True:
        time.sleep(1)
atexit.register(never)
threading.Thread(target=never).start()
print("harmless: the result is delivered, then the sandbox goes")
