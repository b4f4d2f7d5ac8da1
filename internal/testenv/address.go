package testenv

import (
	"fmt"
	"net"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

const loopback = "127.0.0.1"

// ReservedAddress is ReserveAddress for a test, until it ends.
func ReservedAddress(t testing.TB) string {
	t.Helper()
	return ReservedAddressAt(t, loopback)
}

// ReservedAddressAt is ReservedAddress at an IPv4 address of this machine.
func ReservedAddressAt(t testing.TB, host string) string {
	t.Helper()
	address, release, err := reserve(host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(release)
	return address
}

// ReserveAddress returns an unused address HOST:PORT of the loopback interface, for a
// program that takes its address as an argument. Until release is called, the kernel does
// not assign the port to another program that requests any port, or to an outgoing
// connection. The program must set SO_REUSEADDR, as Go and Node do by default.
func ReserveAddress() (address string, release func(), err error) { return reserve(loopback) }

func reserve(host string) (address string, release func(), err error) {
	ip := net.ParseIP(host).To4()
	if ip == nil {
		return "", nil, fmt.Errorf("%q is not an IPv4 address", host)
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return "", nil, os.NewSyscallError("socket", err)
	}
	release = func() { unix.Close(fd) }
	defer func() {
		if err != nil {
			release()
		}
	}()
	// Bound and not listening: others that reuse addresses may listen beside it.
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err != nil {
		return "", nil, os.NewSyscallError("setsockopt", err)
	}
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte(ip)}); err != nil {
		return "", nil, os.NewSyscallError("bind", err)
	}
	bound, err := unix.Getsockname(fd)
	if err != nil {
		return "", nil, os.NewSyscallError("getsockname", err)
	}
	at, ok := bound.(*unix.SockaddrInet4)
	if !ok {
		return "", nil, fmt.Errorf("got an address of the kind %T", bound)
	}
	return net.JoinHostPort(host, fmt.Sprint(at.Port)), release, nil
}
