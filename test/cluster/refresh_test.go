package cluster

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/internal/database"
)

// interrupted is an authorization server whose answer to a refresh does not arrive, because the node that asks is
// killed meanwhile.
type interrupted struct {
	*issuer
	answers bool // the last byte of the answer is missing; otherwise the request has not been processed

	armed   atomic.Bool   // it is the next refresh
	stopped chan struct{} // closed when the node waits for the answer
}

func (i *interrupted) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/token" || r.PostFormValue("refresh_token") == "" || !i.armed.CompareAndSwap(true, false) {
		i.issuer.ServeHTTP(w, r)
		return
	}
	if i.answers {
		answer := httptest.NewRecorder()
		i.issuer.ServeHTTP(answer, r)
		body := answer.Body.Bytes()
		maps.Copy(w.Header(), answer.Header())
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		w.WriteHeader(answer.Code)
		_, _ = w.Write(body[:len(body)-1]) // the node is alive
		_ = http.NewResponseController(w).Flush()
	}
	close(i.stopped)
	<-r.Context().Done() // the node is dead
}

const readNotes = `import asyncio
from servers.early import read as early
from servers.lenient import read as lenient
from servers.strict import read as strict
`

// A node is killed while it refreshes tokens. Another one refreshes them, if the authorization server accepts the
// former refresh token. Otherwise, the person is asked to sign in again.
func TestANodeIsKilledWhileItRefreshes(t *testing.T) {
	g := newGroup(t)
	servers := map[string]*interrupted{"early": {}, "lenient": {answers: true}, "strict": {answers: true}}
	address, use := g.balancer()
	g.more = fmt.Sprintf("serve: {publicURL: %q}\nmcpServers:\n", address)
	settings := "servers:\n"
	for name, server := range servers {
		server.issuer, server.stopped = startIssuer(t), make(chan struct{})
		server.lenient = name == "lenient"
		server.Config.Handler = server
		g.more += fmt.Sprintf("  %s: {url: %q, startTimeout: 3s}\n", name, server.notes())
		settings += fmt.Sprintf("  %s: {trustAnnotations: true}\n", name)
	}
	g.more += settings
	a, b := g.node("a").serve(), g.node("b").serve()
	use(b) // the browser is signed in there
	ann := a.surfer("ann", address)
	atA := ann.host(a)
	run := func(session *mcp.ClientSession, code string) string {
		t.Helper()
		return call(t, session, "run_code", map[string]any{"language": "python", "code": readNotes + code})
	}
	const all, notes = "result = [await early(), await lenient(), await strict()]",
		`"data":[{"note":"of ann"},{"note":"of ann"},{"note":"of ann"}]`
	if got := run(atA, all); !strings.Contains(got, notes) || ann.asked.Load() != 3 {
		t.Fatalf("asked %d times: %s", ann.asked.Load(), got)
	}
	ended := make(chan struct{})
	for _, server := range servers {
		server.armed.Store(true)
	}
	go func() {
		defer close(ended)
		_, _ = atA.CallTool(t.Context(), &mcp.CallToolParams{Name: "run_code", Arguments: map[string]any{ // it dies
			"language": "python", "code": readNotes + `async def repeat(read):
    while True:
        await read()
        await asyncio.sleep(0.1)
await asyncio.gather(repeat(early), repeat(lenient), repeat(strict))`}})
	}()
	for name, server := range servers {
		select {
		case <-server.stopped:
		case <-ended:
			t.Fatalf("%s: the program has ended before the refresh", name)
		}
	}
	if err := a.process.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = a.process.Wait() // it was killed
	g.shortenTurns(len(servers))
	atB := ann.host(b)
	if got := run(atB, all); !strings.Contains(got, notes) {
		t.Errorf("at node b: %s", got)
	}
	if got := ann.asked.Load(); got != 4 {
		t.Errorf("the person was asked to sign in %d times, want once for each server, and once more for strict", got)
	}
	for name, want := range map[string]int{"early": 0, "lenient": 1, "strict": 1} {
		as := servers[name]
		as.mu.Lock()
		if as.reused != want || len(as.used) < 2 {
			t.Errorf("%s: of %d refresh tokens, %d were used again, want %d", name, len(as.used), as.reused, want)
		}
		as.mu.Unlock()
	}
}

// shortenTurns shortens the turns of a node that was killed while it refreshed tokens to a few seconds. They are no
// longer than a minute.
func (g *group) shortenTurns(want int) {
	g.Helper()
	db := g.database()
	left, err := database.Rows(g.Context(), db, "SELECT until - unixepoch() FROM sign_in_turn", nil,
		database.Column[int64])
	if err == nil {
		err = db.Exec(g.Context(), "UPDATE sign_in_turn SET until = unixepoch() + 5")
	}
	if err != nil {
		g.Fatal(err)
	}
	if len(left) != want {
		g.Errorf("%d sign-ins are being refreshed, want %d", len(left), want)
	}
	for _, seconds := range left {
		if seconds > int64(time.Minute/time.Second) {
			g.Errorf("another node waits for %d s", seconds)
		}
	}
}
