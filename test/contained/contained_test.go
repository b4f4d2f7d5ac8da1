package contained

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/runner/runsc"
)

// owner is the user of mounted directories.
const owner = 41000

const permitExample = `
@id("example") permit (principal == ContainedServer::"probe", action == Action::"connect", resource)
when { resource.name == "api.example.com" };
`

// Issue 30: a contained server has its own variables and nothing else of the host.
func TestContainedServerHasNothingOfTheHost(t *testing.T) {
	t.Setenv("SECRET_OF_AIRLOCK", "sesame-of-airlock")
	l := open(t, "true", "", "127.0.0.1:9")
	got := l.call(`
import os, socket
print(sorted(os.environ), os.environ["TOKEN_OF_PROBE"] == "sesame-of-" + "probe")
print(open("/proc/version").read().count("gvisor"), os.getuid(), os.listdir("/home"), os.getcwd())
for path in ["/etc/shadow", "/etc/hostname", "/var/log", "/root/.ssh"]:
    if os.path.exists(path): print("found", path)
try:
    socket.socket(socket.AF_UNIX).connect("/run/airlock/broker.sock"); print("reached the broker")
except OSError: pass
try:
    socket.create_connection(("198.18.0.1", 53), 2); print("has a network")
except OSError: pass
print([name for _, name in socket.if_nameindex()])
`)
	want := `['HOME', 'LANG', 'PATH', 'PWD', 'TOKEN_OF_PROBE'] True
1 65532 ['.airlock'] /workspace
['lo']`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// Issue 30: a contained server reaches the hosts that configuration and policy both permit. Each connection is recorded
// with the server as its principal, before and after.
func TestContainedServerReachesNamedHosts(t *testing.T) {
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "hello "+r.Host)
	}))
	defer site.Close()
	l := open(t, `{network: ["api.example.com:80", "unpermitted.example.com:80"]}`, permitExample,
		site.Listener.Addr().String())
	got := l.call(`
import urllib.request
for host in ["api.example.com", "unpermitted.example.com", "unlisted.example.com"]:
    try: print(urllib.request.urlopen("http://" + host + "/", timeout=60).read().decode())
    except OSError as e: print("refused")
`)
	if want := "hello api.example.com\nrefused\nrefused"; got != want {
		t.Fatalf("got %q, want %q", got, want)
	}
	records := l.ended()
	state := l.state()
	if len(state.Reached) != 2 || state.Reached[0].Connections != 1 || state.Reached[0].Received == 0 ||
		state.Reached[1].Refused == 0 || !strings.Contains(state.Reached[1].Reason, "no policy permits it") {
		t.Errorf("got %+v, want one connection and a refusal", state.Reached)
	}
	var seen []string
	for _, r := range records {
		seen = append(seen, fmt.Sprintf("%s %s %s %s %s", r.Kind, r.CallerKind, r.Principal, r.ServerID, r.Decision))
		if r.Kind == audit.KindOutcome && r.Decision == "allow" && r.BytesReceived == 0 {
			t.Errorf("got %+v, want the bytes of the connection", r)
		}
	}
	text := strings.Join(seen, "\n")
	for _, want := range []string{"intent server probe api.example.com:80 allow",
		"outcome server probe api.example.com:80 allow",
		"outcome server probe unpermitted.example.com:80 deny"} {
		if !strings.Contains(text, want) {
			t.Errorf("the records are\n%s\nwithout %q", text, want)
		}
	}
}

// Issue 30: a contained server reads its mounts and writes to those that permit it, as the owner of the files.
func TestContainedServerHasItsMounts(t *testing.T) {
	notes, work := directory(t, owner), directory(t, owner)
	write(t, filepath.Join(notes, "note"), "a note")
	for _, path := range []string{filepath.Join(notes, "note")} {
		if err := os.Chown(path, owner, owner); err != nil {
			t.Fatal(err)
		}
	}
	l := open(t, fmt.Sprintf(`{mounts: [%q, {path: %q, at: /data/work, writable: true}]}`, notes, work), "",
		"127.0.0.1:9")
	got := l.call(fmt.Sprintf(`
import os
print(open(%[1]q + "/note").read())
for act in [lambda: open(%[1]q + "/other", "w"), lambda: os.remove(%[1]q + "/note")]:
    try: act(); print("changed")
    except OSError as e: print(e.strerror)
open("/data/work/made", "w").write("made inside")
print(open("/data/work/made").read(), os.getuid())
os.chdir("/data/work"); os.makedirs("a/b"); os.mkdir("c")
open("a/b/file", "w").write("0123456789"); os.rename("a/b/file", "c/moved"); os.truncate("c/moved", 4)
os.link("c/moved", "a/linked"); os.symlink("linked", "a/symbolic"); os.rmdir("a/b"); os.replace("c/moved", "a/moved")
print(open("a/symbolic").read(), sorted(os.listdir("a")), os.listdir("c"))
`, notes))
	if want := "a note\nRead-only file system\nRead-only file system\nmade inside 41000\n" +
		"0123 ['linked', 'moved', 'symbolic'] []"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	// The threads that serve the files are confined by Landlock, which needs this mark.
	if confined := markedThreads(t); (confined > 0) != runsc.MountsConfined() {
		t.Errorf("got %d confined threads, want them if the kernel can: %v", confined, runsc.MountsConfined())
	}
	var stat unix.Stat_t
	if err := unix.Stat(filepath.Join(work, "made"), &stat); err != nil || stat.Uid != owner {
		t.Errorf("the file on the host: got owner %d, %v", stat.Uid, err)
	}
	write(t, filepath.Join(notes, "later"), "written later")
	if got := l.call(fmt.Sprintf(`print(open(%q).read())`, filepath.Join(notes, "later"))); got != "written later" {
		t.Errorf("got %q, want what the host wrote after the start", got)
	}
}

// markedThreads returns how many threads of this process can gain no privileges.
func markedThreads(t *testing.T) (n int) {
	t.Helper()
	threads, err := filepath.Glob("/proc/self/task/*/status")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range threads {
		status, err := os.ReadFile(path)
		if err != nil {
			continue // the thread has ended
		}
		if strings.Contains(string(status), "NoNewPrivs:\t1") {
			n++
		}
	}
	return n
}

// Issue 30: a server that ends is started again, with the same back-off as without a sandbox. Its stderr can be
// read. Exceeding the limit of memory ends only this server.
func TestContainedServerIsRestarted(t *testing.T) {
	l := open(t, "{memory: 128MiB, disk: 8MiB}", "", "127.0.0.1:9")
	if got := l.call("import os; os._exit(3)"); !strings.HasPrefix(got, "error: ") {
		t.Errorf("got %q, want an error", got)
	}
	if got := l.call("print('again')"); got != "again" {
		t.Errorf("got %q, want an answer of the second start", got)
	}
	if got := l.state().Starts; got != 2 {
		t.Errorf("got %d starts, want 2", got)
	}
	if got := l.call("x = bytearray(1 << 30)\nfor i in range(0, len(x), 4096): x[i] = 1\nprint('had a " +
		"GiB')"); strings.Contains(got, "had") {
		t.Errorf("got %q, want the limit", got)
	}
}
