package daemon

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A host is a process of this machine whose request had a valid token. It is one until it ends, also after its
// connection. The connections of trusted proxies are not those of hosts. TestAHostOverHTTPCannotWiden
// (cmd/airlock) tries a real host.
func TestHostsOnThisMachine(t *testing.T) {
	for name, test := range map[string]struct {
		proxies []netip.Prefix
		token   bool
		want    bool
	}{
		"with a token":    {nil, true, true},
		"without a token": {nil, false, false},
		"a trusted proxy": {[]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			hosts := newLocalHosts(slog.New(slog.DiscardHandler), test.proxies)
			defer hosts.close()
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer listener.Close()
			_, port, _ := net.SplitHostPort(listener.Addr().String())
			client := exec.Command("bash", "-c",
				"exec 3<>/dev/tcp/127.0.0.1/"+port+"; read -r line; exec 3>&-; read -r line")
			in, err := client.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := client.Start(); err != nil {
				t.Fatal(err)
			}
			defer client.Wait()
			defer in.Close()
			conn, err := listener.Accept()
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			// The pipe to the client is that of this process, which is therefore the host.
			host := exec.Command("sh", "-c", "echo $PPID")
			out, err := host.Output()
			if err != nil {
				t.Fatal(err)
			}
			isFound := func() bool {
				return slices.ContainsFunc(hosts.find(), func(pid int) bool {
					return strings.TrimSpace(string(out)) == strconv.Itoa(pid)
				})
			}
			ctx := hosts.accept(t.Context(), conn)
			if isFound() {
				t.Error("a connection without a request is one of a host")
			}
			if test.token {
				hosts.saw(ctx)
			}
			if got := isFound(); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
			if _, err := in.Write([]byte("close\n")); err != nil {
				t.Fatal(err)
			}
			if _, err := conn.Read(make([]byte, 1)); err == nil {
				t.Fatal("the client did not close the connection")
			}
			hosts.follow(conn, http.StateClosed)
			if got := isFound(); got != test.want {
				t.Errorf("after the connection: got %t, want %t", got, test.want)
			}
			ended, end := context.WithCancel(ctx)
			end()
			hosts.saw(ended)
			if len(hosts.open) != 0 {
				t.Errorf("after the connection: got %d open ones", len(hosts.open))
			}
		})
	}
}
