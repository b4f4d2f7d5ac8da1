# tries: to fill the host's memory or disks with output
# stopped by: the bytes that a run may write are limited
# want: OutputLimit

while True:
    os.write(1, b"x" * 65536)
    os.write(2, b"y" * 65536)
