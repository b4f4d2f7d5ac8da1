# tries: to start threads without end
# stopped by: threads count as processes
# want: ProcessLimit

import threading
while True:
    threading.Thread(target=time.sleep, args=(60,)).start()
