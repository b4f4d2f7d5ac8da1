package doors

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/app/runlog"
	"github.com/airlock-mcp/airlock/internal/store"
)

// tokenLife is the life of a token that expires while its run is suspended.
const tokenLife = 20 * time.Second

// A suspended run and its question end with the token that began it: when it is revoked, expires, or loses its profile,
// while the daemon serves and while it does not. An answer that comes meanwhile does not count (issue 23).
func TestSuspendedRunsEndWithTheirToken(t *testing.T) {
	var made atomic.Int32
	server := mcp.NewServer(&mcp.Implementation{Name: "alpha", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "change", Description: "Changes something."},
		func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
			made.Add(1)
			return &mcp.CallToolResult{}, nil, nil
		})
	d := startWith(t, served(t, server))
	revoke := func(id string, _ time.Time) { d.prints("tokens", "revoke", id) }
	expire := func(_ string, end time.Time) {
		expired, stop := context.WithDeadline(t.Context(), end)
		defer stop()
		<-expired.Done()
	}
	for _, test := range []struct {
		name  string
		flags []string
		end   func(id string, end time.Time)
		away  bool // the daemon does not serve meanwhile
	}{
		{"revoked", nil, revoke, false},
		{"revoked while it is away", nil, revoke, true},
		{"expired", []string{"--expires", tokenLife.String()}, expire, false},
		{"expired while it is away", []string{"--expires", tokenLife.String()}, expire, true},
		{"its profile is gone", []string{"--profile", "small"}, func(string, time.Time) {
			text, err := os.ReadFile(d.file)
			if err != nil {
				t.Fatal(err)
			}
			without := strings.Replace(string(text), `profiles: {small: {servers: {alpha: ["*"]}}}`, "", 1)
			if err := os.WriteFile(d.file, []byte(without), 0o600); err != nil {
				t.Fatal(err)
			}
			d.settles("the change is not in force", func() bool {
				status, _ := d.get("its profile is gone", "/v1/approvals")
				return status == http.StatusUnauthorized
			})
		}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			d.T = t
			var token struct {
				ID    string `json:"token_id"`
				Token string
			}
			raw := d.prints(append([]string{"tokens", "create", "x", "--for", "ann", "--json"}, test.flags...)...)
			if err := json.Unmarshal([]byte(raw), &token); err != nil || token.Token == "" {
				t.Fatalf("%s: %v", raw, err)
			}
			end := time.Now().Add(tokenLife)
			d.tokens[test.name] = token.Token
			run := d.suspendsFor(d.host(test.name, "/mcp", eras[1]))
			question := d.questionOf(run)
			if test.away {
				d.stop()
			}
			test.end(token.ID, end)
			if test.away {
				d.begin()
			}
			_, shown := d.get("administrator", "/v1/approvals/"+question)
			if _, digest, asks := strings.Cut(shown, `"digest":"`); asks { // it has not ended yet
				d.post("administrator", "/v1/approvals/"+question,
					`{"decision": "approve", "digest": "`+digest[:strings.IndexByte(digest, '"')]+`"}`)
			}
			d.settles("the run or its question has not ended", func() (ended bool) {
				_, open := d.get("administrator", "/v1/approvals")
				left, err := filepath.Glob(filepath.Join(store.Suspended(os.Getenv("AIRLOCK_HOME")), "*"))
				return err == nil && len(left) == 0 && !strings.Contains(open, run) && d.hasEnded(run)
			})
			if status, _ := d.get(test.name, "/v1/approvals"); status != http.StatusUnauthorized {
				t.Errorf("a request with the token: got %d", status)
			}
			if n := made.Load(); n != 0 {
				t.Errorf("%d calls were made", n)
			}
		})
	}
}

// hasEnded reports whether the audit log has the end of a run.
func (d *daemon) hasEnded(run string) bool {
	d.Helper()
	var list struct {
		Runs []struct {
			ID    string `json:"run_id"`
			State string
		}
	}
	raw := d.prints("runs", "list", "-n", "1000", "--json")
	if err := json.Unmarshal([]byte(raw), &list); err != nil {
		d.Fatalf("%s: %v", raw, err)
	}
	for _, one := range list.Runs {
		if one.ID == run {
			return one.State != runlog.Suspended && one.State != runlog.Unfinished
		}
	}
	return false
}
