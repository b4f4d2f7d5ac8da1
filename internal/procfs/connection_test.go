package procfs

import (
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
)

func TestOwnersOfSockets(t *testing.T) {
	table := filepath.Join(t.TempDir(), "tcp")
	text := "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n" +
		"   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     7        0 1 1 0 100 0 0 10 " +
		"0\n   1: 0100007F:C001 0100007F:1F90 01 00000000:00000000 00:00000000 00000000  1001        0 2 1 0 20 4 30 " +
		"10 -1\n   2: 0100007F:C002 0100007F:1F90 01 00000000:00000000 00:00000000 00000000     x        0 3\n" +
		"   3: short\n"
	if err := os.WriteFile(table, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	to := netip.MustParseAddrPort("127.0.0.1:8080")
	for from, want := range map[string]int{"127.0.0.1:49153": 1001, "127.0.0.1:49154": -1, "127.0.0.1:49155": -1,
		"127.0.0.1:8080": -1} {
		got, ok := ownerOfSocket(table, netip.MustParseAddrPort(from), to)
		if !ok {
			got = -1
		}
		if got != want {
			t.Errorf("%s: got %d, want %d", from, got, want)
		}
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
