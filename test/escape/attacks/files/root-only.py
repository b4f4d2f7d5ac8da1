# tries: to read a file of the host that only root may read
# stopped by: of the host's directories only the image, the wrappers and the run's own socket directory are there
# want: nothing
# on the host: succeeds

attempt("read", lambda: open("{{root_file}}").read())
