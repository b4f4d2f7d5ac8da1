package testenv_test

import (
	"context"
	"net"
	"strconv"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/airlock-mcp/airlock/internal/testenv"
)

// A program can listen at a reserved address, end, and listen there again.
func TestAReservedAddressCanBeListenedAt(t *testing.T) {
	address := testenv.ReservedAddress(t)
	if conn, err := net.Dial("tcp", address); err == nil {
		conn.Close()
		t.Error("something listens there already")
	}
	for range 3 {
		l, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		conn.Close()
		l.Close()
	}
}

// A program that requests any port does not get a reserved one, even if no other is free.
func TestAReservedPortIsGivenToNobodyElse(t *testing.T) {
	address, release, err := testenv.ReserveAddress()
	if err != nil {
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	only, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	// A listener that may have this port or none (ip(7), IP_LOCAL_PORT_RANGE).
	anyOf := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var set error
		err := c.Control(func(fd uintptr) {
			set = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_LOCAL_PORT_RANGE, only<<16|only)
		})
		if set != nil {
			t.Skipf("this kernel gives no port out of a range: %v", set)
		}
		return err
	}}
	if l, err := anyOf.Listen(context.Background(), "tcp4", "127.0.0.1:0"); err == nil {
		t.Errorf("%s was given to a second listener", l.Addr())
		l.Close()
	}
	release()
	l, err := anyOf.Listen(context.Background(), "tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("after its release: %v", err)
	}
	l.Close()
}
