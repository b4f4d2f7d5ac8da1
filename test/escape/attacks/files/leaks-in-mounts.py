# tries: to learn the host's directories from the lists of mounts
# stopped by: gVisor lists its own mounts, whose sources are not paths of the host
# want: nothing
# on the host: succeeds

for file in ("mounts", "mountinfo", "mountstats"):
    def look():
        text = open(f"/proc/self/{file}").read()
        telling = [
            word for word in (
                "{{state_dir}}", "/var/lib", "/dev/vd", "/dev/sd", "/dev/nvme", "/dev/mapper", "/dev/root", "ext4",
                "xfs", "btrfs", "cgroup") if word in text]
        return telling or None
    attempt(file, look)
