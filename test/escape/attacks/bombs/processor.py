# tries: to take all processor time, in many threads that never give up
# stopped by: the control group limits processor time; the run's time is limited
# want: Timeout
# timeout: 3s

for _ in range(8):
    if os.fork() == 0:
        while True:
            pass
while True:
    pass
