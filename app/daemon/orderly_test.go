package daemon

import (
	"net"
	"testing"
	"time"
)

// Connections that wait for Accept are not reset by Close (issue 28: a load balancer does not repeat their requests).
func TestClosingAcceptsWhatWaits(t *testing.T) {
	l, err := listenOrderly(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	connect := func(wait time.Duration) error {
		conn, err := net.DialTimeout("tcp", l.Addr().String(), wait)
		if err == nil {
			t.Cleanup(func() { conn.Close() })
		}
		return err
	}
	waited := 0
	for ; waited < 20; waited++ {
		if err := connect(time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	closed := make(chan error, 1)
	go func() { closed <- l.Close() }()
	for t.Context().Err() == nil && connect(20*time.Millisecond) == nil { // until new ones are refused
		waited++
	}
	accepted := 0
	for {
		conn, err := l.Accept()
		if err != nil {
			break
		}
		conn.Close()
		accepted++
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
	if accepted < waited { // of one that took too long, its client does not know whether it is complete
		t.Errorf("%d of %d connections were accepted", accepted, waited)
	}
	if err := connect(time.Minute); err == nil {
		t.Error("a connection after the end was accepted")
	}
}
