package dist

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// booting makes $1 the root of the file system, with the images in $2, and runs systemd
// as its first process, in a separate control group.
const booting = `
set -e
root=$1 images=$2
mount --make-rprivate /
mount --bind "$root" "$root"
mount --bind "$images" "$root/var/lib/airlock/images"
mount -t proc proc "$root/proc"
mount -t sysfs sysfs "$root/sys"
mount --rbind /dev "$root/dev"
mount -t tmpfs tmpfs "$root/run"
mount -t tmpfs tmpfs "$root/tmp"
if [ -e /sys/fs/cgroup/cgroup.controllers ]; then
	mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
else
	mount -t tmpfs tmpfs "$root/sys/fs/cgroup"
	for of in cpu cpuacct memory pids devices freezer; do
		mkdir "$root/sys/fs/cgroup/$of"
		mount -t cgroup -o "$of" cgroup "$root/sys/fs/cgroup/$of"
	done
	mkdir "$root/sys/fs/cgroup/systemd"
	mount -t cgroup -o none,name=systemd cgroup "$root/sys/fs/cgroup/systemd"
fi
cd "$root"
mkdir -p before
pivot_root . before
umount -l /before
rmdir /before
container=other exec /lib/systemd/systemd --log-target=null --show-status=0
`

// walk does what an operator does with the service, and prints its findings line by line.
const walk = `
ask() { # the first line of an answer
	exec 3<>/dev/tcp/127.0.0.1/7823 || return
	printf 'GET /healthz HTTP/1.0\r\n\r\n' >&3
	head -n 1 <&3
	exec 3>&-
}
pid() { systemctl show --property MainPID --value airlock.service; }
echo "before a request: $(systemctl is-active airlock.socket) $(systemctl is-active airlock.service)"
echo "the first request: $(ask)"
echo "after it: $(systemctl is-active airlock.service)"
until airlock status --config /etc/airlock/airlock.yaml | grep -q ^ready; do sleep 0.2; done
echo "status: ready"
cd /root
echo 'result = 6 * 7' >answer.py
airlock run --config /etc/airlock/airlock.yaml answer.py | sed 's/.*"result":{"ok":true,"data":\([0-9]*\).*/a run: \1/'
first=$(pid)
systemctl reload airlock.service && echo "reload: $(systemctl is-active airlock.service)"
systemctl kill --kill-who=main --signal=KILL airlock.service
while [ "$(pid)" = "$first" ] || [ "$(pid)" = 0 ]; do sleep 0.2; done
echo "after it was killed: $(ask)"

# upgrade installs the package again, which dpkg treats as an upgrade.
upgrade() {
	dpkg --install /root/airlock.deb 2>&1 | grep -E '^(Restarting|No service|airlock.service did|Process)' |
		sed 's/^Process [0-9]* \(.*[^ ]\) *$/Process N \1/'
}
until airlock status --config /etc/airlock/airlock.yaml | grep -q ^ready; do sleep 0.2; done
first=$(pid)
printf 'import time\ntime.sleep(4)\nresult = 1\n' >slow.py
airlock run --config /etc/airlock/airlock.yaml slow.py | sed 's/.*"result":{"ok":true,"data":\([0-9]*\).*/\1/' >slow &
running=$!
until airlock status --config /etc/airlock/airlock.yaml | grep -q '1 run going on'; do sleep 0.1; done
# A host's process is not the service, and stays.
mkfifo hold
airlock mcp --config /etc/airlock/airlock.yaml <hold >/dev/null 2>&1 &
host=$!
exec 3>hold
until airlock status --config /etc/airlock/airlock.yaml | grep -q '1 host'; do sleep 0.1; done
: >asking
while [ -e asking ]; do ask 2>/dev/null || echo refused; done >asked &
asks=$!
upgrade
rm asking
exec 3>&-
wait $asks $running $host
[ "$(pid)" != "$first" ] && echo "the upgrade: another process; the run: $(cat slow); requests: $(sort -u asked | tr '\r\n' '  ')"
cp /etc/airlock/airlock.yaml right.yaml
echo 'serve: {nonsense: 1}' >/etc/airlock/airlock.yaml
upgrade
cp right.yaml /etc/airlock/airlock.yaml
systemctl reset-failed
systemctl start airlock.service
systemctl stop airlock.socket airlock.service
upgrade
echo "stopped: $(systemctl is-active airlock.socket) $(systemctl is-active airlock.service) $(systemctl show --property Result --value airlock.service)"

systemctl start airlock.socket
echo "before the removal: $(ask) $(systemctl is-active airlock.service)"
dpkg --remove airlock >removed 2>&1
echo "removed: $(ask 2>/dev/null || echo refused) $(systemctl is-active airlock.socket) $(systemctl is-active airlock.service)" \
	"$(systemctl list-unit-files --no-legend 'airlock*' | wc -l) units, kept: $(ls -d /etc/airlock /var/lib/airlock/audit | tr '\n' ' ')"
`

// notRestarted is what an upgrade prints if it did not restart a service.
const notRestarted = "No service was restarted. A daemon that was started by hand is still the old version: " +
	"airlock stop; airlock serve --detach"

// unit has systemd run the walk once the system is up, and end with it.
const unit = `[Unit]
After=airlock.socket multi-user.target
SuccessAction=exit-force
FailureAction=exit-force
[Service]
Type=oneshot
WorkingDirectory=/root
Environment=HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin AIRLOCK_HOME=/var/lib/airlock
ExecStart=/bin/bash /root/walk
StandardOutput=file:/root/walk.out
StandardError=file:/root/walk.err
TimeoutStartSec=300
[Install]
WantedBy=default.target
`

// newGroup makes a control group for systemd's own, and removes all of them at the end.
func newGroup(t *testing.T) string {
	t.Helper()
	root := "/sys/fs/cgroup/systemd"
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err == nil {
		root = "/sys/fs/cgroup"
	}
	group, err := os.MkdirTemp(root, "airlock-test-")
	if err != nil {
		t.Skipf("this system lets no other systemd manage its processes: %v", err)
	}
	t.Cleanup(func() {
		var groups []string
		filepath.WalkDir(group, func(path string, entry fs.DirEntry, err error) error {
			if err == nil && entry.IsDir() {
				groups = append(groups, path)
			}
			return nil
		})
		slices.Reverse(groups) // those below come first
		for _, path := range groups {
			if err := os.Remove(path); err != nil {
				t.Error(err)
			}
		}
	})
	return group
}

// The service of the package under a real systemd: it starts with the first request, with
// all that the unit takes from it, runs programs, reloads, comes back when it is killed,
// and stops in order. Issue 23: an upgrade restarts it after the runs in progress, no request
// is refused meanwhile, and the upgrade prints if it did not restart a service. Issue 27: the removal stops the
// service and keeps its configuration and audit log.
func TestTheServiceUnderSystemd(t *testing.T) {
	s, env := newSystem(t)
	group := newGroup(t)
	s.run("apt-get --yes --no-install-recommends install systemd-sysv dbus /root/airlock.deb && systemctl enable " +
		"airlock.socket && mkdir -p /var/lib/airlock/images")
	for name, text := range map[string]string{
		"etc/airlock/airlock.yaml": "serve: {drainTime: 5s}\n", "root/walk": walk,
		"etc/systemd/system/walk.service": unit,
	} {
		at := filepath.Join(s.root, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s.run("systemctl enable walk.service")
	cmd := exec.Command(
		"sh", "-ec", `echo $$ >"$0/cgroup.procs"; exec unshare --mount --net --pid --ipc --uts --cgroup --fork `+
			`--kill-child sh -c "$@"`,
		group, booting, "boot", s.root, filepath.Join(env.Home, "images"))
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"}
	ended, err := cmd.CombinedOutput()
	said := func(name string) string {
		text, _ := os.ReadFile(filepath.Join(s.root, "root", name)) // empty if the walk has not begun
		return string(text)
	}
	want := strings.Join([]string{
		"before a request: active inactive", "the first request: HTTP/1.0 200 OK\r", "after it: active",
		"status: ready", "a run: 42",
		"reload: active", "after it was killed: HTTP/1.0 200 OK\r",
		"Restarting airlock.service, which first answers what it has begun.",
		"Process N still runs the old version: airlock mcp --config /etc/airlock/airlock.yaml",
		"the upgrade: another process; the run: 1; requests: HTTP/1.0 200 OK  ",
		"Restarting airlock.service, which first answers what it has begun.",
		"airlock.service did not start again: systemctl status airlock.service", notRestarted, notRestarted,
		"stopped: inactive inactive success",
		"before the removal: HTTP/1.0 200 OK\r active",
		"removed: refused inactive inactive 0 units, kept: /etc/airlock /var/lib/airlock/audit ", "",
	}, "\n")
	if got := said("walk.out"); got != want {
		t.Errorf("got\n%s\nwant\n%s\nsystemd: %v, %s\n%s", got, want, err, ended, said("walk.err"))
	}
}
