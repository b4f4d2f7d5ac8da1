# tries: to gain privileges by writing a set-user-ID program, or by one of the image
# stopped by: the writable places are mounted nosuid, the image has no such program, and no new privileges can be gained
# want: nothing

import shutil, stat
for directory in ("/tmp", "/workspace"):
    copy = directory + "/sh"
    shutil.copy("/bin/sh", copy)
    os.chmod(copy, 0o6755)
    def run():
        ids = subprocess.run([copy, "-p", "-c", "cat /proc/self/status"], capture_output=True, text=True).stdout
        line = [l for l in ids.splitlines() if l.startswith("Uid:")][0].split()[1:]
        return None if set(line) == {str(os.getuid())} else line
    attempt(copy, run)
for directory, _, names in os.walk("/usr"):
    for name in names:
        path = os.path.join(directory, name)
        mode = os.lstat(path).st_mode
        if stat.S_ISREG(mode) and mode & 0o6000:
            result.append(path)
