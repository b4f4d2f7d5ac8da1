# tries: to fill the host's memory with the output of many processes
# stopped by: the bytes that a run may write are counted over all its processes
# want: OutputLimit

for _ in range(10):
    if os.fork() == 0:
        while True:
            os.write(1, b"x" * 4096 + b"\n")
time.sleep(60)
