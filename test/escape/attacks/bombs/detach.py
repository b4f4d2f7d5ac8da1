# tries: to leave a process behind that outlives the run
# stopped by: the sandbox is killed as a whole, with every process in it
# want: nothing

if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for fd in range(3):
            os.close(fd)
        while True:
            time.sleep(1)
    os._exit(0)
os.wait()
print("harmless: it is left to the test to look")
