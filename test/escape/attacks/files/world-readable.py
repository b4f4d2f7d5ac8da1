# tries: to read a file of the host that everyone may read
# stopped by: of the host's folders only the image, the wrappers and the run's own socket folder are there
# want: nothing
# on the host: succeeds

attempt("read", lambda: open("{{world_file}}").read())
