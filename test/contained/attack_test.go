package contained

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"
	"golang.org/x/sys/unix"

	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/internal/reach"
	"github.com/airlock-mcp/airlock/internal/testenv"
)

// Issue 30: from a sandbox with a network, nothing but the named host is reachable, in any notation and by any
// protocol.
func TestContainedServerReachesNothingElse(t *testing.T) {
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/redirect" {
			http.Redirect(w, r, "http://169.254.169.254/latest/meta-data/", http.StatusFound)
			return
		}
		fmt.Fprint(w, "hello")
	}))
	defer site.Close()
	bait, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer bait.Close()
	_, port, err := net.SplitHostPort(bait.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	l := open(t, `{network: ["api.example.com:80"]}`, permitExample, site.Listener.Addr().String())
	got := l.call(`
import socket, ssl, urllib.request
found = []
def attempt(what, act):
    try: act(); found.append(what)
    except (OSError, ValueError): pass
def tcp(host, port=` + port + `):
    socket.create_connection((host, port), 5).close()
for host in ["2130706433", "0x7f000001", "0177.0.0.1", "127.1", "127.0.0.1", "0", "localhost", "10.0.0.1",
             "192.168.0.1", "169.254.169.254", "100.100.100.200", "198.18.0.1", "1.1.1.1", "::1", "::ffff:127.0.0.1",
             "::ffff:169.254.169.254", "fe80::1%eth0", "fe80::a9fe:a9fe%2", "64:ff9b::a9fe:a9fe", "fd00:ec2::254",
             "metadata.google.internal"]:
    attempt("tcp " + host, lambda: tcp(host))
for port in [22, 443, 8080, 65535, 0]:
    attempt("port %d" % port, lambda: tcp("api.example.com", port))
def udp(address, port):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.settimeout(1)
        s.sendto(b"x" * 40, (address, port))
        s.recv(1)
attempt("udp to another name server", lambda: udp("8.8.8.8", 53))
attempt("udp to the stack", lambda: udp("198.18.0.1", 123))
attempt("quic", lambda: udp(socket.gethostbyname("api.example.com"), 443))
def ping():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP) as s:
        s.settimeout(1)
        s.sendto(bytes([8, 0, 0xf7, 0xff, 0, 0, 0, 0]), ("198.18.0.1", 0))
        s.recv(1)
attempt("icmp", ping)
for family, protocol in [(socket.AF_INET, socket.IPPROTO_ICMP), (socket.AF_INET, socket.IPPROTO_RAW),
                         (socket.AF_INET6, socket.IPPROTO_ICMPV6), (socket.AF_PACKET, 3)]:
    attempt("raw socket %s %s" % (family, protocol), lambda: socket.socket(family, socket.SOCK_RAW, protocol).close())
attempt("redirect", lambda: urllib.request.urlopen("http://api.example.com/redirect", timeout=20).read())
def connect_through():
    with socket.create_connection(("api.example.com", 80), 20) as s:
        s.sendall(b"CONNECT 169.254.169.254:80 HTTP/1.1\r\nHost: api.example.com\r\n\r\n")
        if not s.recv(1): raise OSError("closed")
attempt("CONNECT", connect_through)
for label in ["secret-1", "secret-2"]:
    attempt("label", lambda: socket.gethostbyname(label + ".api.example.com"))
def answers(data):
    with socket.create_connection(("api.example.com", 80), 20) as s:
        s.sendall(data)
        got = b""
        try:
            while part := s.recv(4096): got += part
        except OSError: pass
        return got
def answered(data, times=1):
    if answers(data).count(b"HTTP/1") < times: raise OSError("no answer")
def client_hello(name):
    out = ssl.MemoryBIO()
    try: ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), out, server_hostname=name).do_handshake()
    except ssl.SSLWantReadError: return out.read()
get = lambda host: b"GET / HTTP/1.1\r\nHost: " + host + b"\r\n\r\n"
attempt("Host", lambda: answered(get(b"other.example.com")))
attempt("a later Host", lambda: answered(get(b"api.example.com") + get(b"other.example.com"), 2))
attempt("HTTP/2", lambda: answered(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))
attempt("server name", lambda: answered(client_hello("other.example.com")))
for i in range(5):
    attempt("server name", lambda: answered(client_hello("part-%d-of-the-secret.api.example.com" % i)))
answered(client_hello("api.example.com")) # the site answers that it does not speak TLS
print(found, urllib.request.urlopen("http://api.example.com/", timeout=60).read().decode())
`)
	if got != "[] hello" {
		t.Errorf("got %q, want nothing but the host", got)
	}
}

// Issue 30: a server takes all ports, connections and packets of its network. The host needs little memory for it, and
// the network works again afterwards.
func TestContainedServerExhaustsItsNetwork(t *testing.T) {
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for r.URL.Path == "/endless" {
			if _, err := w.Write(make([]byte, 64<<10)); err != nil {
				return
			}
		}
		fmt.Fprint(w, "hello")
	}))
	t.Cleanup(site.Close) // after Airlock's connections to it
	l := open(t, `{network: ["api.example.com:80"]}`, permitExample, site.Listener.Addr().String())
	if got := l.call("print('started')"); got != "started" {
		t.Fatalf("got %q", got)
	}
	before := testenv.Heap()
	got := l.call(`
import socket, urllib.request
address = socket.gethostbyname("api.example.com")
held, asked = [], 0
for i in range(64): # the host would send without an end
    try:
        s = socket.create_connection((address, 80), 60); held.append(s)
        s.sendall(b"GET /endless HTTP/1.1\r\nHost: api.example.com\r\n\r\n"); s.recv(1); asked += 1
    except OSError: pass
try:
    for _ in range(2000):
        s = socket.socket(); s.setblocking(False); held.append(s)
        s.connect_ex((address, 80))
except OSError: held.pop().close()
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setblocking(False)
for i in range(5000):
    try: s.sendto(b"\xff" * 500, ("198.18.0.1", 53)); s.sendto(b"\xff" * 60000, ("198.18.0.1", 53))
    except OSError: pass
print(asked > 30)
`)
	if got != "True" {
		t.Errorf("got %q, want more than 30 answers that are not taken", got)
	}
	if grown := testenv.Heap() - before; grown > mostOfANetwork {
		t.Errorf("the host holds %d bytes for the network of a server, want at most %d", grown, mostOfANetwork)
	}
	got = l.call(`
for s in held: s.close()
for attempt in range(100):
    try:
        print(urllib.request.urlopen("http://api.example.com/", timeout=60).read().decode()); break
    except OSError as e: error = e
else: print("the network does not recover", error)
`)
	if got != "hello" {
		t.Errorf("got %q, want an answer of the host", got)
	}
}

// mostOfANetwork is how much memory of the host the network of a server may take, with 64 connections.
const mostOfANetwork = 48 << 20

// Issue 30: the name of a host gets another address with each question, with the TTL 0, and aliases: no connection from
// a sandbox reaches an address that is not on the internet.
func TestContainedServerWithAHostileResolver(t *testing.T) {
	bait, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer bait.Close()
	_, port, err := net.SplitHostPort(bait.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	names, asked := hostileResolver(t)
	host := "api.example.com:" + port
	c, err := config.Load(configure(t, fmt.Sprintf(`{network: [%q]}`, host), permitExample), os.LookupEnv)
	if err != nil {
		t.Fatal(err)
	}
	l := openWith(t, c, nil, (&reach.Dialer{Resolver: names}).DialContext)
	got := l.call(`
import socket
found = []
for i in range(12):
    try: socket.create_connection(("api.example.com", ` + port + `), 20).close(); found.append(i)
    except OSError: pass
print(found)
`)
	if got != "[]" || asked.Load() < 12 {
		t.Errorf("got %s after %d questions, want no connection and a question for each", got, asked.Load())
	}
	for _, r := range l.ended() {
		if r.Outcome == audit.OutcomeOK {
			t.Errorf("a connection is recorded as made: %+v", r)
		}
	}
}

// hostileResolver returns a resolver whose answers change, and how often it was asked for an IPv4 address.
func hostileResolver(t *testing.T) (*net.Resolver, *atomic.Int64) {
	t.Helper()
	server, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	near := []string{"127.0.0.1", "10.0.0.1", "169.254.169.254", "0.0.0.0", "100.100.100.200", "192.168.0.1"}
	var asked atomic.Int64
	go func() {
		query := make([]byte, 4096)
		for {
			size, from, err := server.ReadFrom(query)
			if err != nil {
				return
			}
			var m dnsmessage.Message
			if m.Unpack(query[:size]) != nil || len(m.Questions) != 1 {
				continue
			}
			m.Response, m.Additionals = true, nil
			if q := m.Questions[0]; q.Type == dnsmessage.TypeA {
				alias := dnsmessage.MustNewName("inside.example.net.")
				address := netip.MustParseAddr(near[int(asked.Add(1))%len(near)])
				m.Answers = []dnsmessage.Resource{
					{Header: dnsmessage.ResourceHeader{Name: q.Name, Type: dnsmessage.TypeCNAME, Class: q.Class},
						Body: &dnsmessage.CNAMEResource{CNAME: alias}},
					{Header: dnsmessage.ResourceHeader{Name: alias, Type: dnsmessage.TypeA, Class: q.Class},
						Body: &dnsmessage.AResource{A: address.As4()}},
				}
			}
			if packed, err := m.Pack(); err == nil {
				_, _ = server.WriteTo(packed, from)
			}
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", server.LocalAddr().String())
	}}, &asked
}

// Issue 30: a server attacks Airlock with its output: bytes that are not messages, messages that are too large or too
// deep, answers to no request, and a flood of requests and notices. It is called again afterwards.
func TestContainedServerAttacksItsClient(t *testing.T) {
	l := open(t, "true", "", "127.0.0.1:9")
	if got := l.call("print('started')"); got != "started" {
		t.Fatalf("got %q", got)
	}
	before := testenv.Heap()
	for name, output := range map[string]string{
		"bytes":                       `bytes(range(256)) * 1000 + b"\n"`,
		"a line without an end":       `b"x" * (40 << 20) + b"\n"`,
		"a message that is too large": `b'{"jsonrpc":"2.0","id":1,"result":{"x":"' + b"x" * (40 << 20) + b'"}}\n'`,
		"a deep message":              `b'{"jsonrpc":"2.0","id":1,"result":' + b"[" * 10**6 + b"]" * 10**6 + b"}\n"`,
		"answers": `b"".join(b'{"jsonrpc":"2.0","id":%d,"result":{}}\n' % i
    for i in range(999, 20000))`,
		"errors": `b'{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"no"}}\n' * 5000`,
		"requests": `b"".join(b'{"jsonrpc":"2.0","id":"r%d","method":"%s","params":{}}\n' % (i, m)
    for i in range(500)
    for m in [b"sampling/createMessage", b"elicitation/create", b"roots/list", b"tools/call", b"no/such", b"ping"])`,
		"notices": `b"".join(b'{"jsonrpc":"2.0","method":"notifications/%s","params":{"progressToken":1,"progress":1,` +
			`"level":"info","data":"x","uri":"x:y"}}\n' % m for i in range(500)
    for m in [b"tools/list_changed", b"progress", b"message", b"resources/updated", b"cancelled", b"no-such"])`,
	} {
		got := l.call("import os\ndata = " + output + "\nwhile data: data = data[os.write(1, data):]\nprint('alive')")
		if got != "alive" && !strings.HasPrefix(got, "error: ") {
			t.Errorf("%s: got %.200q, want the answer or an error", name, got)
		}
		for again := ""; again != "again"; {
			select {
			case <-t.Context().Done():
				t.Fatalf("%s: got %.200q, want a server that works again", name, again)
			case <-time.After(50 * time.Millisecond):
				again = l.call("print('again')")
			}
		}
	}
	if grown := testenv.Heap() - before; grown > 32<<20 {
		t.Errorf("%d bytes are held for a server, want at most 32 MiB", grown)
	}
}

// Issue 30: links, special files and names with dots in a mount lead to no file of the host outside of it.
func TestContainedServerStaysInItsMounts(t *testing.T) {
	outside, work := directory(t, owner), directory(t, owner)
	const flag = "flag-of-the-host"
	secret := filepath.Join(outside, "secret")
	write(t, secret, flag)
	for name, target := range map[string]string{
		"link": secret, "to-etc": "/etc/passwd", "up": "../" + filepath.Base(outside) + "/secret",
		"self": "/proc/self/root", "dir": outside,
	} {
		if err := os.Symlink(target, filepath.Join(work, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Mkfifo(filepath.Join(work, "fifo"), 0o666); err != nil {
		t.Fatal(err)
	}
	socket, err := net.Listen("unix", filepath.Join(work, "socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	passwd, err := os.ReadFile("/etc/passwd")
	if err != nil {
		t.Fatal(err)
	}
	l := open(t, fmt.Sprintf(`{mounts: [{path: %q, at: /data/work, writable: true}]}`, work), "", "127.0.0.1:9")
	got := l.call(fmt.Sprintf(`
import os, socket
os.chdir("/data/work")
def attempt(what, act):
    try: print(what, act())
    except (OSError, ValueError): pass
read = lambda path: open(path, opener=lambda p, f: os.open(p, f | os.O_NONBLOCK)).read()
os.symlink(%[1]q, "made"); os.symlink("/", "root"); os.symlink("../../../../../.." + %[1]q, "far")
for path in ["link", "up", "dir/secret", "made", "root" + %[1]q, "far", "..//../../../../.." + %[1]q, "self" + %[1]q,
             "fifo"]:
    attempt(path, lambda: read(path))
attempt("hard link", lambda: (os.link("link", "hard"), read("hard")))
attempt("passwd", lambda: "same" if len(read("to-etc")) == %[2]d else "")
attempt("rename", lambda: os.rename("link", "../outside"))
def unix_socket():
    s = socket.socket(socket.AF_UNIX); s.connect("socket"); return "connected"
attempt("socket", unix_socket)
attempt("device", lambda: os.mknod("device", 0o20666, os.makedev(1, 1)))
attempt("set user ID", lambda: (open("suid", "w"), os.chown("suid", 0, 0)))
`, secret, len(passwd)))
	for _, found := range []string{flag, "connected", "same", "device", "rename", "set user ID"} {
		if strings.Contains(got, found) {
			t.Errorf("got %q, with %q", got, found)
		}
	}
}

// Issue 30: a server that ends its sandbox again and again is left alone after a while, and works again later.
func TestContainedServerInALoop(t *testing.T) {
	l := open(t, "true", "", "127.0.0.1:9")
	for got := ""; !strings.Contains(got, "is not restarted for a while"); {
		got = l.call("import os, signal; os.kill(1, signal.SIGKILL); os.kill(-1, signal.SIGKILL); os._exit(1)")
		if !strings.HasPrefix(got, "error: ") {
			t.Errorf("got %q, want an error", got)
		}
	}
	before := l.state().Starts
	for got := ""; got != "again"; {
		select {
		case <-t.Context().Done():
			t.Fatalf("got %q, want another start", got)
		case <-time.After(100 * time.Millisecond):
			got = l.call("print('again')")
		}
	}
	if starts := l.state().Starts; starts != before+1 {
		t.Errorf("got %d starts, want %d", starts, before+1)
	}
}

// Issue 30: a server that looks for the broker finds no socket that takes a connection.
func TestContainedServerFindsNoBroker(t *testing.T) {
	l := open(t, "true", "", "127.0.0.1:9")
	got := l.call(`
import os, socket, stat
found, sockets = [], ["\0airlock", "\0broker", "\0/run/airlock/broker.sock"]
for top, dirs, names in os.walk("/"):
    if top in ("/proc", "/sys"): dirs.clear(); continue
    for name in names:
        try: mode = os.lstat(os.path.join(top, name)).st_mode
        except OSError: continue
        if stat.S_ISSOCK(mode): sockets.append(os.path.join(top, name))
for name in sockets:
    for kind in [socket.SOCK_STREAM, socket.SOCK_SEQPACKET, socket.SOCK_DGRAM]:
        try: socket.socket(socket.AF_UNIX, kind).connect(name); found.append(name)
        except OSError: pass
for fd in os.listdir("/proc/self/fd"):
    if int(fd) > 2:
        try: found += [os.readlink("/proc/self/fd/" + fd)] if "socket" in os.readlink("/proc/self/fd/" + fd) else []
        except OSError: pass
print(found)
`)
	if got != "[]" {
		t.Errorf("got %q, want no socket", got)
	}
}
