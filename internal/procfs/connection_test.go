package procfs

import (
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

func TestOwnersOfSockets(t *testing.T) {
	const head = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
	const rest = " 00000000:00000000 00:00000000 00000000 "
	tables := map[string]string{
		"tcp": "   0: 0100007F:1F90 00000000:0000 0A" + rest + "    7 0 1 1 0 100 0 0 10 0\n" +
			"   1: 0100007F:C001 0100007F:1F90 01" + rest + " 1001 0 2 1 0 20 4 30 10 -1\n" +
			"   2: 0100007F:C002 0100007F:1F90 01" + rest + "    x 0 3\n" +
			"   3: short\n",
		"tcp6": "   0: 00000000000000000000000001000000:C003 00000000000000000000000001000000:1F90 01" + rest +
			" 1002 0 4 1\n" +
			"   1: 0000000000000000FFFF00000100007F:C004 0000000000000000FFFF00000100007F:1F90 01" + rest +
			" 1003 0 5 1\n" +
			"   2: 00:C005 0100007F:1F90 01" + rest + " 1004 0 6 1\n",
	}
	var paths []string
	for name, text := range tables {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(head+text), 0o600); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	four, six := netip.MustParseAddrPort("127.0.0.1:8080"), netip.MustParseAddrPort("[::1]:8080")
	mapped := netip.MustParseAddrPort("[::ffff:127.0.0.1]:8080")
	for _, test := range []struct {
		from string
		to   netip.AddrPort
		want socket
	}{
		{"127.0.0.1:49153", four, socket{1001, "2"}}, {"127.0.0.1:49154", four, socket{}},
		{"127.0.0.1:49155", four, socket{}}, {"127.0.0.1:8080", four, socket{}},
		{"[::1]:49155", six, socket{1002, "4"}}, {"127.0.0.1:49156", four, socket{1003, "5"}},
		{"[::ffff:127.0.0.1]:49153", mapped, socket{1001, "2"}}, {"[::1]:49153", six, socket{}},
	} {
		c := Connection{netip.MustParseAddrPort(test.from), test.to}
		if got := sockets(paths, []Connection{c})[c]; got != test.want {
			t.Errorf("%s: got %v, want %v", test.from, got, test.want)
		}
	}
}

// A process that holds a connection is found, on both protocols, also if it inherited the connection.
func TestHolders(t *testing.T) {
	for _, address := range []string{"127.0.0.1:0", "[::1]:0"} {
		t.Run(address, func(t *testing.T) {
			listener, err := net.Listen("tcp", address)
			if err != nil {
				t.Skipf("this machine has no such address: %v", err)
			}
			defer listener.Close()
			conn, err := net.Dial("tcp", listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			file, err := conn.(*net.TCPConn).File()
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			child := exec.Command("cat")
			child.ExtraFiles = []*os.File{file}
			in, err := child.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := child.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { in.Close(); child.Wait() })
			of := []Connection{{netip.MustParseAddrPort(conn.LocalAddr().String()),
				netip.MustParseAddrPort(listener.Addr().String())}}
			got, err := Holders(of)
			if err != nil || !slices.Equal(got, []int{child.Process.Pid}) {
				t.Errorf("got %v, %v, want the child %d and not this process", got, err, child.Process.Pid)
			}
			if got, err := Holders(nil); err != nil || len(got) != 0 {
				t.Errorf("of no connection: got %v, %v", got, err)
			}
		})
	}
}

func TestOwnConnections(t *testing.T) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	conn, err := net.Dial("tcp4", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if !IsOwnConnection(conn.LocalAddr().String(), listener.Addr().String()) {
		t.Error("the connection of this process is not its own")
	}
	for _, remote := range []string{"127.0.0.1:1", "", "no address", "[::1]:1"} {
		if IsOwnConnection(remote, listener.Addr().String()) {
			t.Errorf("%q is a connection of its own", remote)
		}
	}
}
