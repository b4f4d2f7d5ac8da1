# tries: to keep the run from ending by a process that holds its output open
# stopped by: the run ends when the guest has delivered; then everything is killed
# want: nothing

if os.fork() == 0:
    os.setsid()
    while True:
        os.write(1, b"still here\n")
        time.sleep(0.1)
print("harmless: it is left to the test to look")
