# tries: to start processes without end, as the shell's famous eleven characters do
# stopped by: the number of processes is limited inside; the control group limits those of the host
# want: ProcessLimit

bomb() { bomb | bomb & }
bomb
sleep 30
