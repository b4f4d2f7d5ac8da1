package runnertest

import (
	"io"
	"testing"

	"github.com/airlock-mcp/airlock/runner"
)

func testLife(t *testing.T, b *bench) {
	got := b.run(t, b.request(`print("out"); print("err", file=sys.stderr)`))
	if got.stdout != "out\n" || got.stderr != "err\n" || got.exit != (runner.Exit{}) {
		t.Errorf("got %+v, want out, err and status 0", got)
	}
}

func testExits(t *testing.T, b *bench) {
	tests := []struct {
		name, script string
		want         runner.Exit
	}{
		{"status 3", "sys.exit(3)", runner.Exit{Code: 3}},
		// as gVisor's shim has it for a kernel that it cannot ask
		{"status 128", "sys.exit(128)", runner.Exit{Code: 128}},
		{"a status as of a signal", "os._exit(137)", runner.Exit{Code: 137}},
		{"an exception", "1/0", runner.Exit{Code: 1}},
		{"a signal to itself", "import signal; os.kill(os.getpid(), signal.SIGKILL)",
			runner.Exit{Code: 137, Signal: 9}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := b.run(t, b.request(test.script)).exit
			if test.want.Signal != 0 {
				got.Code = test.want.Code // not every driver knows both
			}
			if got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

func testIdentity(t *testing.T, b *bench) {
	b.script(t, `
status = dict(l.split(":", 1) for l in open("/proc/self/status") if ":" in l)
print(os.getresuid(), os.getresgid(), os.getgroups(), os.getcwd(), os.uname().nodename)
print(*(k + "=" + str(int(status[k], 16)) for k in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")))
import ctypes
print(ctypes.CDLL(None).prctl(39, 0, 0, 0, 0)) # PR_GET_NO_NEW_PRIVS
`, "(65532, 65532, 65532) (65532, 65532, 65532) [] /workspace sandbox\nCapInh=0 CapPrm=0 CapEff=0 CapBnd=0 CapAmb=0\n1")
	req := b.request(`print(sorted(k for k in os.environ if k != "LC_CTYPE"))`)
	req.Image.Env = []string{"PATH=/usr/bin", "HOME=/workspace"}
	if got := b.run(t, req).stdout; got != "['HOME', 'PATH']\n" {
		t.Errorf("environment: got %s, want only HOME and PATH", got)
	}
}

func testFiles(t *testing.T, b *bench) {
	b.script(t, `
def probe(path):
    try:
        with open(path, "w") as f: f.write("x")
        return "written"
    except OSError as e:
        return "refused"
for path in ("/workspace/x", "/tmp/x", "/dev/shm/x", "/x", "/usr/x", "/etc/passwd", "/dev/x",
             "/workspace/servers/x", "/workspace/servers/wrapper.py", "/run/airlock/x", "/sys/x"):
    print(path, probe(path))
print(open("/workspace/servers/wrapper.py").read().strip(), os.listdir("/run/airlock"))
`, `/workspace/x written
/tmp/x written
/dev/shm/x written
/x refused
/usr/x refused
/etc/passwd refused
/dev/x refused
/workspace/servers/x refused
/workspace/servers/wrapper.py refused
/run/airlock/x refused
/sys/x refused
x = 1 ['broker.sock']`)
}

func testNetwork(t *testing.T, b *bench) {
	b.script(t, `
import socket
print([n for _, n in socket.if_nameindex()])
for family, address in ((socket.AF_INET, ("1.1.1.1", 53)), (socket.AF_INET, ("169.254.169.254", 80)), (socket.AF_INET6, ("2606:4700::1111", 53))):
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        try:
            s = socket.socket(family, kind); s.settimeout(2); s.connect(address); print("connected", address)
        except OSError:
            pass
`, "['lo']")
}

func testSocket(t *testing.T, b *bench) {
	s := b.acquire(t, b.request(`
import socket
s = socket.socket(socket.AF_UNIX); s.connect("/run/airlock/broker.sock")
s.sendall(b"ping\n"); print(s.recv(100).decode().strip())
`))
	go func() {
		conn, err := s.Listener().Accept()
		if err != nil {
			return // the test fails on what is missing
		}
		defer conn.Close()
		buffer := make([]byte, len("ping\n"))
		if _, err := io.ReadFull(conn, buffer); err == nil && string(buffer) == "ping\n" {
			_, _ = io.WriteString(conn, "pong\n")
		}
	}()
	if got := b.finish(t, s); got.stdout != "pong\n" {
		t.Errorf("got %+v, want pong", got)
	}
}

// testFlush checks that Flush makes output written before the call readable at once.
func testFlush(t *testing.T, b *bench) {
	s := b.acquire(t, b.request(`
import socket
s = socket.socket(socket.AF_UNIX); s.connect("/run/airlock/broker.sock")
for round in range(20):
    os.write(1, b"o" * 20000); os.write(2, b"\xff" * 300)
    s.sendall(b"x"); s.recv(1)
`))
	conn := connected(t, s)
	defer conn.Close()
	for round := range int64(20) {
		if _, err := io.ReadFull(conn, make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		s.Flush()
		if out, errs := s.Stdout().Total, s.Stderr().Total; out != 20000*(round+1) || errs != 300*(round+1) {
			t.Fatalf("round %d: got %d and %d bytes, want %d and %d", round, out, errs, 20000*(round+1), 300*(round+1))
		}
		if _, err := conn.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
	}
}
