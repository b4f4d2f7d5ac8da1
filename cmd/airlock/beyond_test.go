package main

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/airlock-mcp/airlock/internal/testenv"
)

// reachable is an address that is not of the loopback interface (RFC 5737), which the
// script gives to a network of the program's own.
const (
	reachable  = "192.0.2.7"
	ownNetwork = `ip link set lo up; ip address add ` + reachable + `/32 dev lo; exec "$@"`
)

// elsewhere is the real program in a separate network namespace.
func elsewhere(args ...string) *exec.Cmd {
	return exec.Command("unshare", append([]string{"--net", "sh", "-ec", ownNetwork, "sh", ownProgram()}, args...)...)
}

// dialIn dials from the network of a process.
func dialIn(pid int, address string) (net.Conn, error) {
	type dialed struct {
		conn net.Conn
		err  error
	}
	done := make(chan dialed)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		network, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", pid))
		if err == nil {
			defer network.Close()
			err = unix.Setns(int(network.Fd()), unix.CLONE_NEWNET)
		}
		if err != nil {
			done <- dialed{err: err}
			return
		}
		conn, err := net.Dial("tcp", address)
		done <- dialed{conn, err}
	}()
	d := <-done
	return d.conn, d.err
}

// An address that other machines can reach is only used if TLS or a proxy is configured. In
// that case requests without a token, or for another host name, are refused.
func TestAnAddressThatOthersReach(t *testing.T) {
	testenv.OwnHome(t, "python")
	if os.Getuid() != 0 {
		t.Skip("a network of its own needs root")
	}
	t.Chdir(t.TempDir())
	refused := elsewhere("serve", "--listen", reachable+":0")
	var stderr bytes.Buffer
	refused.Stderr = &stderr
	if err := refused.Run(); err == nil || !strings.Contains(stderr.String(), "can be reached from other machines") ||
		!strings.Contains(stderr.String(), "hint: listen on 127.0.0.1") {
		t.Errorf("without TLS: got %v, %s", err, stderr.String())
	}
	t.Setenv("AIRLOCK_CONFIG", "airlock.yaml")
	if err := os.WriteFile("airlock.yaml", []byte("serve: {proxy: true, hosts: [airlock.example.com]}\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	served := elsewhere("serve", "--listen", reachable+":0")
	served.Stderr = t.Output()
	stdout, err := served.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := served.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		served.Process.Signal(syscall.SIGTERM)
		if err := served.Wait(); err != nil {
			t.Errorf("it ended with %v", err)
		}
	}()
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	address, _ := strings.CutPrefix(strings.TrimSpace(line), "http://")
	for name, test := range map[string]struct {
		path, host string
		want       int
	}{
		"no token":                       {"/mcp", "airlock.example.com", http.StatusUnauthorized},
		"no token for the API":           {"/v1/agents", "airlock.example.com", http.StatusUnauthorized},
		"no token for the metrics":       {"/metrics", "airlock.example.com", http.StatusUnauthorized},
		"another name":                   {"/mcp", "evil.example", http.StatusForbidden},
		"the address in place of a name": {"/mcp", reachable, http.StatusForbidden},
	} {
		conn, err := dialIn(served.Process.Pid, address)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", test.path, test.host)
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		conn.Close()
		if res.StatusCode != test.want {
			t.Errorf("%s: got %d, want %d", name, res.StatusCode, test.want)
		}
	}
}
