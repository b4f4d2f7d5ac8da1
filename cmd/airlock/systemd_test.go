package main

import (
	"bufio"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/airlock-mcp/airlock/internal/testenv"
)

// The service manager opens the address, and the daemon notifies it of its state.
func TestTheServiceManagerIsTold(t *testing.T) {
	env := testenv.OwnHome(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	passed, err := listener.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	defer passed.Close()
	path := filepath.Join(env.Home, "notify")
	told, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer told.Close()
	cmd := exec.Command("sh", "-c", `LISTEN_PID=$$ LISTEN_FDS=1 exec "$0" serve`, ownProgram())
	cmd.Dir, cmd.Stderr, cmd.ExtraFiles = t.TempDir(), t.Output(), []*os.File{passed}
	cmd.Env = append(os.Environ(), "NOTIFY_SOCKET="+path)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	url, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || !strings.Contains(url, listener.Addr().String()) {
		t.Fatalf("got %q, %v, want the address that was passed", url, err)
	}
	expect := func(want string) {
		t.Helper()
		message := make([]byte, 1000)
		n, err := told.Read(message)
		if err != nil || !strings.HasPrefix(string(message[:n]), want) {
			t.Errorf("told %q, %v, want %q", message[:n], err, want)
		}
	}
	expect("READY=1")
	res, err := http.Get(strings.TrimSpace(url) + "/healthz")
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("healthz: %v, %v", res, err)
	}
	res.Body.Close()
	cmd.Process.Signal(syscall.SIGHUP)
	expect("RELOADING=1\nMONOTONIC_USEC=")
	expect("READY=1")
	cmd.Process.Signal(syscall.SIGTERM)
	expect("STOPPING=1")
	if err := cmd.Wait(); err != nil {
		t.Errorf("it ended with %v", err)
	}
}

// The units are what systemd takes, and take from the service what it does not need.
func TestUnitsOfSystemd(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is not installed")
	}
	from := filepath.Join(testenv.RepoRoot(t), "packaging", "systemd")
	dir := t.TempDir()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"airlock.service", "airlock.socket"} {
		text, err := os.ReadFile(filepath.Join(from, name))
		if err != nil {
			t.Fatal(err)
		}
		// it need not be installed here
		text = []byte(strings.Replace(string(text), "/usr/bin/airlock ", program+" ", 1))
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	units := []string{filepath.Join(dir, "airlock.service"), filepath.Join(dir, "airlock.socket")}
	if out, err := exec.Command(analyze, append([]string{"verify", "--man=no", "--recursive-errors=no"},
		units...)...).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
	const threshold = "70" // tenths of the exposure: gVisor needs root, name spaces and mounts
	if out, err := exec.Command(analyze, "security", "--offline=yes", "--no-pager", "--threshold="+threshold,
		units[0]).CombinedOutput(); err != nil {
		t.Errorf("systemd-analyze security: %v\n%s", err, out)
	}
}
