# tries: to fill the host's memory or its answer with a result of many megabytes
# stopped by: the guest and the host both limit what a result may be
# want: OutputLimit

result = "x" * (10 << 20)
