# tries: to find credentials where programs keep them
# stopped by: the image has no home directories, and the host's are not there
# want: nothing

paths = [
    ".ssh/id_rsa", ".ssh/id_ed25519", ".aws/credentials", ".config/gcloud/credentials.db", ".azure/accessTokens.json",
    ".kube/config", ".docker/config.json", ".netrc", ".npmrc", ".pypirc", ".git-credentials", ".config/gh/hosts.yml",
    ".vault-token", ".bash_history", ".config/airlock/airlock.yaml"]
homes = ["/root", os.path.expanduser("~"), "/home"] + [
    "/home/" + name for name in (os.listdir("/home") if os.path.isdir("/home") else [])]
for home in homes:
    for path in paths:
        attempt(f"{home}/{path}", lambda: open(f"{home}/{path}").read())
for path in (
    "/etc/shadow", "/etc/gshadow", "/etc/airlock.yaml", "/run/secrets",
    "/var/run/secrets/kubernetes.io/serviceaccount/token"):
    attempt(path, lambda: open(path).read() if os.path.isfile(path) else os.listdir(path))
