package reach

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
)

func TestDistances(t *testing.T) {
	tests := map[Distance][]string{
		Public: {"8.8.8.8", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808",
			"2002:808:808::1"},
		Private: {"10.1.2.3", "172.16.0.1", "192.168.0.1", "100.64.0.1", "198.18.0.1", "192.0.0.8", "255.255.255.255",
			"240.0.0.1", "fd00::1", "fec0::1",
			"::ffff:10.0.0.1", "64:ff9b::a00:1", "64:ff9b:1::1", "2002:a00:1::1", "::10.0.0.1",
			"::ffff:0:10.0.0.1", "2001:0:4136:e378:8000:63bf:3fff:fdd2"},
		Local: {"127.0.0.1", "127.8.8.8", "0.0.0.0", "0.1.2.3", "::", "::1", "::ffff:127.0.0.1", "64:ff9b::7f00:1",
			"2002:7f00:1::1", "::127.0.0.1", "::ffff:0:127.0.0.1", "fe80::a9fe:a9fe%25lo",
			"169.254.169.254", "::ffff:169.254.169.254", "fe80::1", "fe80::1%eth0", "224.0.0.1", "ff02::1",
			"168.63.129.16", "100.100.100.200", "fd00:ec2::254"},
	}
	for want, addresses := range tests {
		for _, address := range addresses {
			if got := Of(netip.MustParseAddr(address)); got != want {
				t.Errorf("%s: got %d, want %d", address, got, want)
			}
		}
	}
}

// Issue 30: a public address of this machine is not on the internet.
func TestOwnAddressesAreLocal(t *testing.T) {
	for address, want := range map[string]Distance{"127.0.0.1": Local, "::ffff:127.0.0.1": Local, "8.8.8.8": Public} {
		if got := own(netip.MustParseAddr(address)); got != want {
			t.Errorf("%s: got %d, want %d", address, got, want)
		}
	}
}

// A name that is looked up never leads to this machine. An address or a local name in a configuration may.
func TestWhatANameMayLeadTo(t *testing.T) {
	const loopback, metadata, private, public = "127.0.0.1", "169.254.169.254", "10.0.0.1", "8.8.8.8"
	tests := []struct {
		host, ip string
		want     bool
	}{
		{"mcp.example", public, true}, {"mcp.example", private, true}, {"mcp.example", loopback, false},
		{"mcp.example", metadata, false}, {"mcp.example", "::1", false},
		{"mcp.example", "::ffff:127.0.0.1", false}, {"mcp.example", "64:ff9b::7f00:1", false},
		{"mcp.example", "0.0.0.0", false},
		{"localhost", loopback, true}, {"localhost.", "::1", true}, {"a.localhost", loopback, true},
		{"localhost", public, false}, {"localhost", metadata, false},
		{"localhost.example", loopback, false}, {"127.0.0.1.example", loopback, false},
		{loopback, loopback, true}, {metadata, metadata, true}, {private, private, true}, {"::1", "::1", true},
	}
	for _, test := range tests {
		if got := may(test.host, netip.MustParseAddr(test.ip)); got != test.want {
			t.Errorf("%s at %s: got %t, want %t", test.host, test.ip, got, test.want)
		}
	}
}

func TestNamesOfTheHostsFile(t *testing.T) {
	hosts := filepath.Join(t.TempDir(), "hosts")
	if err := os.WriteFile(
		hosts, []byte("# comment\n127.0.0.1 localhost\n127.0.1.1 box box.lan # this one\n\nbad line\n"+
			"10.0.0.1\t other\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name, ip string
		want     bool
	}{
		{"box", "127.0.1.1", true}, {"BOX.lan.", "127.0.1.1", true}, {"box", "127.0.0.1", false},
		{"this", "127.0.1.1", false},
		{"other", "10.0.0.1", true}, {"stranger", "127.0.0.1", false}, {"line", "127.0.0.1", false},
	} {
		if got := isListed(hosts, test.name, netip.MustParseAddr(test.ip)); got != test.want {
			t.Errorf("%s at %s: got %t, want %t", test.name, test.ip, got, test.want)
		}
	}
	if isListed(filepath.Join(t.TempDir(), "missing"), "box", netip.MustParseAddr("127.0.1.1")) {
		t.Error("a missing file lists a name")
	}
}

func TestChecks(t *testing.T) {
	named := &Dialer{Named: []string{"login.example", "127.0.0.1"}}
	tests := []struct {
		dialer   *Dialer
		host, ip string
		want     error
	}{
		{&Dialer{}, "a.example", "8.8.8.8", nil},
		{&Dialer{}, "a.example", "10.0.0.1", ErrNearer},
		{&Dialer{}, "10.0.0.1", "10.0.0.1", ErrNearer},
		{&Dialer{}, "localhost", "127.0.0.1", ErrNearer},
		{&Dialer{Nearest: Private}, "a.example", "10.0.0.1", nil},
		{&Dialer{Nearest: Private}, "127.0.0.1", "127.0.0.1", ErrNearer},
		{&Dialer{Nearest: Local}, "127.0.0.1", "127.0.0.1", nil},
		{&Dialer{Nearest: Local}, "a.example", "127.0.0.1", ErrLocal},
		{named, "login.example", "10.0.0.1", nil},
		{named, "login.example", "127.0.0.1", ErrLocal},
		{named, "127.0.0.1", "127.0.0.1", nil},
		{named, "a.example", "10.0.0.1", ErrNearer},
		{Configured(), "a.example", "10.0.0.1", nil},
		{Configured(), "a.example", "127.0.0.1", ErrLocal},
	}
	for _, test := range tests {
		if got := test.dialer.check(test.host, netip.MustParseAddr(test.ip)); !errors.Is(got, test.want) {
			t.Errorf("%s at %s: got %v, want %v", test.host, test.ip, got, test.want)
		}
	}
	named.note("a.example", Local)
	if got := named.Limit(); got != Public {
		t.Errorf("a host that the operator has not named raises the limit to %d", got)
	}
	named.note("login.example", Private)
	if err := named.check("a.example", netip.MustParseAddr("10.0.0.1")); err != nil {
		t.Errorf("a host that a private issuer names: %v", err)
	}
}

// A server was met on the internet. That its name then leads to a private network does not make it a private server.
func TestTheFarthestDistanceCounts(t *testing.T) {
	var met Met
	if _, ok := met.Distance(); ok {
		t.Error("a distance is known before the first connection")
	}
	for _, step := range []struct{ note, want Distance }{{Local, Local}, {Private, Private}, {Local, Private},
		{Public, Public}, {Private, Public}} {
		met.Note(step.note)
		if got, ok := met.Distance(); !ok || got != step.want {
			t.Errorf("after %d: got %d, %t, want %d", step.note, got, ok, step.want)
		}
	}
}
