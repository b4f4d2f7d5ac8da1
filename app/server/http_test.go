package server

import (
	"strings"
	"testing"
)

func TestListenOnlyOnThisMachine(t *testing.T) {
	for address, ok := range map[string]bool{
		"127.0.0.1:0": true, "localhost:0": true, "[::1]:0": true,
		":0": false, "0.0.0.0:0": false, "[::]:0": false, "192.0.2.1:0": false, "example.com:0": false, "8080": false,
	} {
		l, err := Listen(t.Context(), address)
		if (err == nil) != ok && !strings.Contains(address, "::1") { // a machine may lack IPv6
			t.Errorf("Listen(%q): got %v, want success %v", address, err, ok)
		}
		if err == nil {
			l.Close()
		}
	}
}
