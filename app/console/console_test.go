package console_test

import (
	"context"
	"crypto/tls"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"filippo.io/age"

	"github.com/airlock-mcp/airlock/admission/agents"
	"github.com/airlock-mcp/airlock/admission/approval"
	"github.com/airlock-mcp/airlock/app/auth"
	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/app/console"
	"github.com/airlock-mcp/airlock/app/listing"
	"github.com/airlock-mcp/airlock/app/runlog"
	"github.com/airlock-mcp/airlock/app/runs"
	"github.com/airlock-mcp/airlock/app/setup"
	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/broker/replay"
	"github.com/airlock-mcp/airlock/internal/agekey"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/database"
	"github.com/airlock-mcp/airlock/internal/database/databasetest"
	"github.com/airlock-mcp/airlock/internal/testenv"
	"github.com/airlock-mcp/airlock/kernel/iatp"
	"github.com/airlock-mcp/airlock/redact"
)

// served is a console over real parts: tokens, agents, desk, audit log.
type served struct {
	*testing.T
	url     string
	console *console.Console
	tokens  *auth.Tokens
	agents  *agents.Service
	db      *database.DB
	desk    *approval.Desk
	log     *audit.Log
	runs    *runs.Registry
	records *replay.Store
	parked  chan struct{} // closed: the runs that wait go on
	clock   *testenv.Clock
}

// directory is the agent service with the activity in a log.
type directory struct {
	*agents.Service
	log string
}

// Activity returns the newest attempts of an agent.
func (d directory) Activity(id string, period audit.Period, before uint64, n int) ([]agents.Entry, error) {
	return agents.Activity(d.log, id, period, before, n)
}

// serve starts a console; change may change its options.
func serve(t *testing.T, change func(*console.Options)) *served {
	t.Helper()
	dir := t.TempDir()
	s := &served{T: t, clock: testenv.NewClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))}
	db, err := databasetest.Open(t.Context(), filepath.Join(dir, "state.db"), agents.Schema, auth.Schema,
		agents.SchemaInherited, agents.SchemaApprovers, agents.SchemaLists, agents.SchemaDebits, iatp.Schema,
		agents.SchemaSelections, auth.SchemaUses, auth.SchemaCreators, auth.SchemaFacts, auth.SchemaSignOuts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	places := setup.Directories{Audit: filepath.Join(dir, "audit"), Keys: filepath.Join(dir, "keys"),
		Recordings: filepath.Join(dir, "recordings"), Attachments: filepath.Join(dir, "files")}
	if s.log, err = audit.Open(places.Audit, &audit.Options{Keys: places.Keys}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.log.Close() })
	if s.records, err = replay.Open(places.Recordings,
		&replay.Options{Keys: places.Keys, Keep: time.Hour, Size: 1 << 30}); err != nil {
		t.Fatal(err)
	}
	s.parked = make(chan struct{})
	s.runs = runs.New(executor{s}, nil)
	t.Cleanup(s.runs.Close)
	s.agents, s.db = agents.New(agents.Options{Database: db, Log: s.log}), db
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	trust, err := iatp.New(iatp.Options{Database: db, Agents: s.agents, Log: s.log, Identity: agekey.Of(identity)})
	if err != nil {
		t.Fatal(err)
	}
	if s.desk, err = approval.OpenDesk(filepath.Join(dir, "approvals"),
		&approval.Options{Now: s.clock.Now, InForce: func(caller.Caller) bool { return true }}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.desk.Close() })
	s.tokens = auth.NewTokens(db, s.clock.Now)
	kept := &config.Config{}
	kept.Replay = config.Replay{Keep: time.Hour, Size: 1 << 30}
	kept.Attachments = config.Default().Attachments
	log := runlog.New(places, kept, redact.New())
	opts := console.Options{
		Agents: directory{s.agents, places.Audit}, Remotes: trust,
		Approvals: s.desk,
		Identify:  (&auth.Authenticator{Tokens: s.tokens, Agents: s.agents}).Token, Now: s.clock.Now,
		Status: func(context.Context) console.Status {
			return console.Status{State: "ready", Version: "test", Since: s.clock.Now().Add(-time.Hour)}
		},
	}
	if change != nil {
		change(&opts)
	}
	opts.Lists = listing.New(listing.Options{Runs: s.runs, Log: log, Audit: places.Audit, Clean: opts.Clean,
		Now: opts.Now})
	if s.console, err = console.New(opts); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(s.console)
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

// token makes a token of a principal.
func (s *served) token(principal string, scopes ...string) (id, value string) {
	s.Helper()
	made, secret, err := s.tokens.Create(s.Context(), auth.Grant{Name: "test", Principal: principal, Scopes: scopes})
	if err != nil {
		s.Fatal(err)
	}
	return made.ID, secret.Reveal()
}

// browser keeps cookies and does not follow redirects.
type browser struct {
	*served
	client *http.Client
}

func (s *served) browser() *browser {
	jar, err := cookiejar.New(nil)
	if err != nil {
		s.Fatal(err)
	}
	return &browser{s, &http.Client{
		Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}},
	}}
}

// answer is the response to a request.
type answer struct {
	status int
	header http.Header
	body   string
}

func (b *browser) send(method, path string, form url.Values, headers map[string]string) answer {
	b.Helper()
	r, err := http.NewRequestWithContext(b.Context(), method, b.url+path, strings.NewReader(form.Encode()))
	if err != nil {
		b.Fatal(err)
	}
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for name, value := range headers {
		r.Header.Set(name, value)
	}
	res, err := b.client.Do(r)
	if err != nil {
		b.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		b.Fatal(err)
	}
	return answer{res.StatusCode, res.Header, string(body)}
}

func (b *browser) get(path string) answer { b.Helper(); return b.send(http.MethodGet, path, nil, nil) }

// post sends a form with the token of the session's forms, from a page of the console.
func (b *browser) post(path string, form url.Values) answer {
	b.Helper()
	if form == nil {
		form = url.Values{}
	}
	if !form.Has("csrf") {
		form.Set("csrf", b.csrf())
	}
	return b.send(http.MethodPost, path, form, nil)
}

var csrfField = regexp.MustCompile(`name="csrf" value="([^"]*)"`)

// csrf is the token that this browser's forms have.
func (b *browser) csrf() string {
	b.Helper()
	found := csrfField.FindStringSubmatch(b.get("/health").body)
	if found == nil {
		return ""
	}
	return found[1]
}

// signIn returns a browser that is signed in as a principal.
func (s *served) signIn(principal string, scopes ...string) *browser {
	s.Helper()
	_, token := s.token(principal, scopes...)
	b := s.browser()
	if got := b.send(http.MethodPost, "/sign-in", url.Values{"token": {token}},
		nil); got.status != http.StatusSeeOther {
		s.Fatalf("signing in: got %d %s", got.status, got.body)
	}
	return b
}
