# tries: to start processes without end
# stopped by: the number of processes is limited inside; the control group limits those of the host
# want: ProcessLimit

while True:
    os.fork()
