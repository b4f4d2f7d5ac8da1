# tries: to find a credential in its own environment
# stopped by: the environment is written down in the image; nothing of the host's gets in
# want: nothing
# on the host: succeeds

known = {"HOME", "PATH", "LANG", "PWD", "PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "LC_CTYPE"}
attempt("unknown variables", lambda: sorted(set(os.environ) - known) or None)
attempt("initial environment",
    lambda: sorted(
        word.split("=")[0] for word in open("/proc/self/environ").read().split("\0") if word
        and word.split("=")[0] not in known) or None)
