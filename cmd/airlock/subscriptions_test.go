package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/internal/quota"
	"github.com/airlock-mcp/airlock/internal/testenv"
)

// Issue 23: the limit of subscriptions was one of a session, so ten sessions of one caller used up those of a server.
// It is one of the account, and a session that ends gives back what it had.
func TestSubscriptionsOfOneAccount(t *testing.T) {
	closed := make(chan struct{})
	t.Cleanup(func() { close(closed) }) // after the server, which tells of each end
	s := newShelf(t, "")
	go func() {
		for {
			select {
			case <-s.watched:
			case <-closed:
				return
			}
		}
	}()
	testenv.OwnHome(t, "python")
	t.Chdir(t.TempDir())
	t.Setenv("AIRLOCK_CONFIG", "airlock.yaml") // which needs no confirmation
	write(t, "airlock.yaml", fmt.Sprintf("policies: [rules.cedar]\nmcpServers: {lib: {url: %q}}\n", s.url))
	write(t, "rules.cedar", "permit (principal, action, resource);")
	beginDaemon(t)
	token, stderr, code := airlock(t, "tokens", "create", "--scope", "run", "test")
	if code != 0 {
		t.Fatal(stderr)
	}
	host := func() *mcp.ClientSession {
		session, err := mcp.NewClient(&mcp.Implementation{Name: "host", Version: "1"}, nil).Connect(t.Context(),
			&mcp.StreamableClientTransport{Endpoint: statusHere(t).URL + "/mcp",
				HTTPClient: testenv.Bearer(strings.TrimSpace(token))},
			&mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { session.Close() }) // it may be closed already
		return session
	}
	hosts := []*mcp.ClientSession{host(), host()}
	most := int(quota.For(quota.Subscriptions).Each)
	subscribe := func(host *mcp.ClientSession, n int) error {
		return host.Subscribe(t.Context(), &mcp.SubscribeParams{URI: fmt.Sprintf("page://%d", n)})
	}
	for n := range most {
		if err := subscribe(hosts[n%2], n); err != nil {
			t.Fatalf("subscription %d: %v", n+1, err)
		}
	}
	for _, host := range hosts {
		if err := subscribe(host, most); err == nil || !strings.Contains(err.Error(), "its limit of subscriptions") {
			t.Errorf("one more: got %v", err)
		}
	}
	if err := hosts[0].Close(); err != nil {
		t.Fatal(err)
	}
	for err := subscribe(hosts[1], most); err != nil; err = subscribe(hosts[1], most) {
		if t.Context().Err() != nil {
			t.Fatalf("after the end of a session: %v", err)
		}
	}
}
