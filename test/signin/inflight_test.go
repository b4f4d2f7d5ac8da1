package signin

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/internal/testenv"
)

// Calls of bob are in flight to a server that nobody has signed in to and that answers 401 after 150 to 300 ms.
// Meanwhile the daemon's user signs in (issue 23: the calls were sent again as the daemon's user, and carried out). No
// call of bob may be carried out, now or later.
func TestCallsInFlightAreNotSentAsTheDaemonsUser(t *testing.T) {
	testenv.Sandbox(t)
	provider := startProvider(t)
	server := startNotes(t, provider)
	waiting := make(chan struct{})
	inFlight := sync.OnceFunc(func() { close(waiting) })
	server.slow = func() {
		inFlight()
		time.Sleep(300 * time.Millisecond)
	}
	program := newAirlock(t, server)
	text := fmt.Sprintf(
		"mcpServers: {notes: {url: %q}}\nservers: {notes: {trustAnnotations: true, oauth: {clientId: "+
			"airlock}}}\nface: {callTool: true}\n", server.url)
	if err := os.WriteFile(program.configuration, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	bob := program.caller(t, program.serve(t), "bob")
	stop := make(chan struct{})
	var work sync.WaitGroup
	for range 8 {
		work.Go(func() {
			for over := false; !over; {
				select {
				case <-stop:
					over = true // after one more call, which begins after the sign-in
				default:
				}
				result, err := bob.CallTool(t.Context(),
					&mcp.CallToolParams{Name: "call_tool",
						Arguments: map[string]any{"server": "notes", "tool": "whoami"}})
				if err != nil {
					t.Error(err)
					return
				}
				if raw, err := json.Marshal(result); err != nil ||
					!strings.Contains(string(raw), "airlock login notes --for bob") {
					t.Errorf("got %s, %v, want that bob has to sign in", raw, err)
				}
			}
		})
	}
	testenv.Receive(t, "a call that waits", waiting)
	program.login(t, follows)
	close(stop)
	work.Wait()
	if n := server.calls(); n != 0 {
		t.Errorf("%d calls of bob were carried out with the sign-in of the daemon's user", n)
	}
}
