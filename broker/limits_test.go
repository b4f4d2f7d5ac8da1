package broker_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/airlock-mcp/airlock/admission"
	"github.com/airlock-mcp/airlock/admission/agents"
	"github.com/airlock-mcp/airlock/admission/clusterlimit"
	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/broker"
	"github.com/airlock-mcp/airlock/internal/database"
	"github.com/airlock-mcp/airlock/internal/database/databasetest"
	"github.com/airlock-mcp/airlock/redact"
)

func TestLimits(t *testing.T) {
	hourly := admission.Rate{Calls: 3, Per: time.Hour}
	tests := []struct {
		name   string
		limits admission.Limits
		call   func(i int) broker.Call
		fails  int // the first call that fails
		want   string
		limit  string // its name in the record
		acted  bool   // the failing call was made
	}{
		{"calls of a run", admission.Limits{Calls: 3}, distinct, 3, "BudgetExceeded", "limits.calls", false},
		{"calls of a session", admission.Limits{SessionCalls: 3}, distinct, 3, "BudgetExceeded", "limits.sessionCalls",
			false},
		{"bytes out", admission.Limits{BytesOut: 30}, distinct, 2, "BudgetExceeded", "limits.bytesOut", false},
		{"bytes in, used up", admission.Limits{BytesIn: 86}, distinct, 2, "BudgetExceeded", "limits.bytesIn", false},
		{"bytes in, with a result that would exceed them", admission.Limits{BytesIn: 85}, distinct, 1, "BudgetExceeded",
			"limits.bytesIn", true},
		{"one result too large", admission.Limits{ResultBytes: 10}, distinct, 0, "OutputLimit", "limits.resultBytes",
			true},
		{"the rate of all servers", admission.Limits{ServerRate: hourly}, distinct, 3, "RateLimit", "limits.rate",
			false},
		{"the rate of one server",
			admission.Limits{Servers: map[string]admission.ServerLimits{"files": {Rate: hourly}}},
			distinct, 3, "RateLimit", "servers.files.rate", false},
		{"the rate of all tools", admission.Limits{ToolRate: hourly}, distinct, 3, "RateLimit", "limits.toolRate",
			false},
		{"the rate of one tool",
			admission.Limits{Servers: map[string]admission.ServerLimits{
				"files": {Tools: map[string]admission.Rate{"read_file": hourly}}}},
			distinct, 3, "RateLimit", "servers.files.tools.read_file.rate", false},
		{"a loop", admission.Limits{Repeats: 3}, func(int) broker.Call { return call("read_file", `{"path":"x"}`) }, 3,
			"LoopDetected", "limits.repeats", false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			f := newFixture(t, func(o *options) { o.Limits = test.limits })
			s := f.open()
			for i := range test.fails {
				if answer := s.Call(t.Context(), test.call(i)); !answer.OK {
					t.Fatalf("call %d: got %+v, want ok", i, answer.Error)
				}
			}
			answer := s.Call(t.Context(), test.call(test.fails))
			checkAnswer(t, answer, test.want, "")
			if retryable := test.want == "RateLimit"; answer.Error.Retryable != retryable || len(answer.Raw) > 0 {
				t.Errorf("got retryable %v and %d bytes, want %v and none", answer.Error.Retryable, len(answer.Raw),
					retryable)
			}
			all := f.records(t)
			if last := all[len(all)-1]; last.Limit != test.limit || last.Detail == "" {
				t.Errorf("the record: got limit %q because %q, want %q", last.Limit, last.Detail, test.limit)
			}
			if acted := len(f.upstream.calls) > test.fails; acted != test.acted {
				t.Errorf("the failing call was made: got %v, want %v", acted, test.acted)
			}
		})
	}
}

// nodes returns a run at each of two nodes of a cluster, which share its database.
func nodes(t *testing.T, limits admission.Limits) (all [2]*fixture, runs [2]*broker.RunCalls, db *database.DB) {
	t.Helper()
	db, err := databasetest.Open(t.Context(), filepath.Join(t.TempDir(), "a.db"), agents.Schema,
		clusterlimit.SchemaCalls)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	for i := range all {
		f := newFixture(t, func(o *options) { o.Limits = limits })
		rates := clusterlimit.NewCalls(db, slog.New(slog.DiscardHandler))
		end, err := f.admission.OpenAgents(admission.AgentOptions{Database: db, CallRates: rates,
			Agents: agents.New(agents.Options{Database: db, Log: f.log})})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { end(); _ = rates.Close() })
		all[i], runs[i] = f, f.open()
	}
	return all, runs, db
}

// The nodes of a cluster share the rates of servers and tools. A refused call gets the same message as on one machine.
// Without the database a node has the rates for itself.
func TestNodesShareRates(t *testing.T) {
	rate := admission.Rate{Calls: 3, Per: time.Hour}
	for name, c := range map[string]struct {
		limits  admission.Limits
		refused string
	}{
		"limits.rate":     {admission.Limits{ServerRate: rate}, `server "files" is called too often`},
		"limits.toolRate": {admission.Limits{ToolRate: rate}, `tool "read_file" is called too often`},
	} {
		t.Run(name, func(t *testing.T) {
			all, runs, _ := nodes(t, c.limits)
			for i := range 3 {
				checkAnswer(t, runs[i%2].Call(t.Context(), distinct(i)), "", "")
			}
			for i, run := range runs {
				answer := run.Call(t.Context(), distinct(3))
				checkAnswer(t, answer, "RateLimit", c.refused)
				if hint := regexp.MustCompile(`; try again in (19m5[0-9.]+s|20m0s)$`); !answer.Error.Retryable ||
					!hint.MatchString(answer.Error.Message) {
					t.Errorf("node %d: got %+v", i, answer.Error)
				}
				records := all[i].records(t)
				if last := records[len(records)-1]; last.Limit != name {
					t.Errorf("node %d: the record names the limit %q", i, last.Limit)
				}
			}
		})
		t.Run(name+" without the database", func(t *testing.T) {
			_, runs, db := nodes(t, c.limits)
			for i := range 2 {
				checkAnswer(t, runs[i].Call(t.Context(), distinct(i)), "", "")
			}
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			for i := range 2 {
				checkAnswer(t, runs[1].Call(t.Context(), distinct(2+i)), "", "")
			}
			checkAnswer(t, runs[1].Call(t.Context(), distinct(4)), "RateLimit", c.refused)
		})
	}
}

func TestLimitsThatMakeNoSense(t *testing.T) {
	f := newFixture(t, nil)
	for name, limits := range map[string]admission.Limits{
		"a negative count":      {Calls: -1},
		"a negative size":       {BytesIn: -1},
		"a rate without calls":  {ToolRate: admission.Rate{Per: time.Second}},
		"a rate without a time": {ServerRate: admission.Rate{Calls: 1}},
		"a tool's rate that allows nothing": {Servers: map[string]admission.ServerLimits{
			"files": {Tools: map[string]admission.Rate{"x": {}}}}},
		"a server's negative time": {
			Servers: map[string]admission.ServerLimits{"files": {CallTimeout: -1}}},
		"no room for one result to be read in": {ResultBytes: 2, UnreadBytes: 1},
	} {
		if _, err := admission.New(admission.Options{Log: f.log, Rules: admission.Rules{Limits: limits}}); err == nil {
			t.Errorf("%s: got nil, want an error", name)
		}
	}
}

func TestLimitsAreListed(t *testing.T) {
	limits := admission.DefaultLimits()
	limits.Servers = map[string]admission.ServerLimits{
		"crm": {CallTimeout: time.Second, Rate: admission.Rate{Calls: 5, Per: time.Second},
			Tools: map[string]admission.Rate{"find": {Calls: 1, Per: time.Minute}}},
		"mail": {},
	}
	table := limits.Table()
	for name, want := range map[string]string{
		"limits.calls": "1000", "limits.rate": "1000/5s", "limits.resultBytes": "12582912",
		"limits.callTimeout": "1m0s",
		"servers.crm.rate":   "5/1s", "servers.crm.tools.find.rate": "1/1m0s", "mcpServers.crm.callTimeout": "1s",
	} {
		if table[name] != want {
			t.Errorf("%s: got %q, want %q", name, table[name], want)
		}
	}
	if got, ok := table["servers.mail.rate"]; ok {
		t.Errorf("servers.mail.rate: got %q, want nothing for a server like all others", got)
	}
}

// A server that knows its own credential cannot exceed the maximum frame size by repeating the
// credential, which redaction makes longer.
func TestRedactionDoesNotLengthenResultsBeyondTheirLimit(t *testing.T) {
	f := newFixture(t, func(o *options) {
		o.Redactor = redact.New()
		o.Redactor.Hold("t0k3n!")
		o.Limits.ResultBytes = 1000
	})
	f.upstream.answer = func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
		return json.RawMessage(`{"content":[{"type":"text","text":"` + strings.Repeat("t0k3n! ", 100) + `"}]}`), nil
	}
	answer := f.open().Call(t.Context(), distinct(0))
	checkAnswer(t, answer, "OutputLimit", "more than the 1000")
	if len(answer.Raw) > 0 {
		t.Errorf("got %d bytes of result, want none", len(answer.Raw))
	}
}

// A call is checked against its own number, however many calls have arrived since.
func TestCallsUnderWayKeepTheirNumbers(t *testing.T) {
	f := newFixture(t, func(o *options) { o.Limits = admission.Limits{Calls: 8} })
	s := f.open()
	var wg sync.WaitGroup
	var mu sync.Mutex
	made := 0
	for i := range 64 {
		wg.Go(func() {
			if answer := s.Call(t.Context(), distinct(i)); answer.OK {
				mu.Lock()
				made++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if made != 8 {
		t.Errorf("calls made: got %d, want 8", made)
	}
}

func TestServersHaveTheirOwnTime(t *testing.T) {
	f := newFixture(t, func(o *options) {
		o.Limits.Servers = map[string]admission.ServerLimits{"files": {CallTimeout: time.Millisecond}}
	})
	f.upstream.answer = func(ctx context.Context, _ string, _ json.RawMessage) (json.RawMessage, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	checkAnswer(t, f.open().Call(t.Context(), call("read_file", `{"path":"x"}`)), "Timeout", "within 1ms")
	all := f.records(t)
	if got := all[len(all)-1].Limit; got != "mcpServers.files.callTimeout" {
		t.Errorf("the record: got limit %q", got)
	}
}

func TestRatesFillUpAgain(t *testing.T) {
	now := time.Now()
	f := newFixture(t, func(o *options) {
		o.Limits.ServerRate = admission.Rate{Calls: 2, Per: time.Hour}
		o.Now = func() time.Time { return now }
	})
	s := f.open()
	for i, step := range []struct {
		passed time.Duration
		ok     bool
	}{{0, true}, {0, true}, {0, false}, {29 * time.Minute, false}, {time.Minute, true}, {0, false},
		{2 * time.Hour, true}, {0, true}, {0, false}} {
		now = now.Add(step.passed)
		if answer := s.Call(t.Context(), distinct(i)); answer.OK != step.ok {
			t.Fatalf("call %d: got %+v, want ok %v", i, answer.Error, step.ok)
		}
	}
}

// big makes the server answer with results of about this many bytes.
func (f *fixture) big(size int) {
	f.upstream.answer = func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
		return json.RawMessage(`{"content":[{"type":"text","text":"` + strings.Repeat("x", size) + `"}]}`), nil
	}
}

// Issue 27: calls and lookups wait for a rate that permits them soon. A wait ends with its run.
func TestShortRateLimitsAreWaitedOut(t *testing.T) {
	rate := admission.Rate{Calls: 2, Per: 100 * time.Millisecond}
	for name, limits := range map[string]admission.Limits{
		"of servers": {ServerRate: rate}, "of tools": {ToolRate: rate}, "of both": {ServerRate: rate, ToolRate: rate},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newFixture(t, func(o *options) { o.Limits, o.Now = limits, nil }).open()
				began := time.Now()
				for i := range 10 {
					checkAnswer(t, s.Call(t.Context(), distinct(i)), "", "")
				}
				if got, want := time.Since(began), 400*time.Millisecond; got != want {
					t.Errorf("10 calls took %v, want %v", got, want)
				}
				ended, cancel := context.WithCancel(t.Context())
				cancel()
				before := time.Now()
				s.Call(ended, distinct(11))
				if got := time.Since(before); got != 0 {
					t.Errorf("a call of a run that has ended waited %v, want nothing", got)
				}
				s.Close()
			})
		})
	}
	t.Run("of the catalog", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newFixture(t, func(o *options) { o.Limits.CatalogRate, o.Now = rate, nil }).open()
			began := time.Now()
			for range 10 {
				done, refused := s.Look(t.Context())
				if refused != nil {
					t.Fatalf("got %v, want an answer", refused)
				}
				done()
			}
			if got, want := time.Since(began), 400*time.Millisecond; got != want {
				t.Errorf("10 lookups took %v, want %v", got, want)
			}
		})
	})
	t.Run("at once", func(t *testing.T) { // the calls wait one after the other, up to the limit of a second
		synctest.Test(t, func(t *testing.T) {
			s := newFixture(t, func(o *options) {
				o.Limits, o.Now = admission.Limits{ServerRate: admission.Rate{Calls: 10, Per: time.Second}}, nil
			}).open()
			var all sync.WaitGroup
			var ok, refused atomic.Int32
			for i := range 30 {
				all.Go(func() {
					if s.Call(t.Context(), distinct(i)).OK {
						ok.Add(1)
					} else {
						refused.Add(1)
					}
				})
			}
			all.Wait()
			if ok.Load() != 20 || refused.Load() != 10 {
				t.Errorf("got %d answers and %d refusals, want 20 and 10", ok.Load(), refused.Load())
			}
		})
	})
}

func TestLooksIntoTheCatalogHaveARate(t *testing.T) {
	f := newFixture(t, func(o *options) { o.Limits.CatalogRate = admission.Rate{Calls: 2, Per: time.Hour} })
	s := f.open()
	for i := range 3 {
		done, refused := s.Look(t.Context())
		switch {
		case i < 2 && refused != nil:
			t.Fatalf("look %d: got %v", i, refused)
		case i < 2:
			done()
		case refused == nil || refused.Type != "RateLimit" || !refused.Retryable:
			t.Errorf("look %d: got %+v, want RateLimit", i, refused)
		}
	}
	if done, refused := f.open().Look(t.Context()); refused != nil {
		t.Errorf("another run: got %+v, want its own rate", refused)
	} else {
		done()
	}
}

// A server that ignores a cancelled call does not block the run forever.
func TestCloseDoesNotWaitForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		started, over := make(chan struct{}), make(chan struct{})
		f.upstream.answer = func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
			close(started)
			<-over
			return json.RawMessage(`{"content":[]}`), nil
		}
		s := f.open()
		ended := make(chan struct{})
		go func() {
			s.Call(t.Context(), distinct(0))
			close(ended)
		}()
		<-started
		if got := s.Close().Open; got != 1 {
			t.Errorf("calls left open: got %d, want 1", got)
		}
		close(over)
		<-ended
		if got := s.Close().Open; got != 0 {
			t.Errorf("calls left open at last: got %d, want 0", got)
		}
	})
}

func TestFailuresAreRemembered(t *testing.T) {
	f := newFixture(t, func(o *options) { o.Policies = nil })
	s := f.open()
	answer := s.Call(t.Context(), distinct(0))
	got, ok := s.Failed(answer.Error.CallID)
	if want := (broker.Error{Type: "PolicyDenied", Source: "broker", CallID: answer.Error.CallID}); !ok || got != want {
		t.Errorf("got %+v (%v), want %+v", got, ok, want)
	}
	if _, ok := s.Failed("call_of_another_run"); ok {
		t.Error("another run's call: got true, want false")
	}
	for range 2000 {
		s.Tell(broker.Error{Type: "ToolError"})
	}
	if _, ok := s.Failed(answer.Error.CallID); ok {
		t.Error("the oldest of many failures is still kept")
	}
}

func TestNamesAreRecordedInWholeCharacters(t *testing.T) {
	f := newFixture(t, nil)
	for _, name := range []string{strings.Repeat("é", 200), "x" + strings.Repeat("é", 200),
		"xy" + strings.Repeat("€", 200), strings.Repeat("𝄞", 100) + "x"} {
		f.open().Call(t.Context(), call(name, `{}`))
		all := f.records(t)
		got := all[len(all)-1].ToolName
		if short := strings.TrimSuffix(got, "…"); !utf8.ValidString(got) || strings.Contains(got, "\uFFFD") ||
			!strings.HasPrefix(name, short) || len(short) > 256 || len(short) < 250 {
			t.Errorf("got %q of %d bytes, want the name's beginning in at most 256", got, len(got))
		}
	}
}

func distinct(i int) broker.Call {
	return call("read_file", `{"path":"`+strings.Repeat("a", i+1)+`"}`)
}

func TestPollingThatSeesAChangeIsNoLoop(t *testing.T) {
	f := newFixture(t, func(o *options) { o.Limits.Repeats = 3 })
	n := 0
	f.upstream.answer = func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
		n++
		return json.RawMessage(`{"content":[{"type":"text","text":"` + strings.Repeat("x", n/2) + `"}]}`), nil
	}
	s := f.open()
	for i := range 10 {
		if answer := s.Call(t.Context(), call("read_file", `{"path":"x"}`)); !answer.OK {
			t.Fatalf("call %d: got %+v, want ok", i, answer.Error)
		}
	}
}

func TestManyCallsAtOnce(t *testing.T) {
	f := newFixture(t, func(o *options) { o.Limits.Concurrent = 4 })
	var mu sync.Mutex
	now, most := 0, 0
	f.upstream.answer = func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
		mu.Lock()
		now++
		most = max(most, now)
		mu.Unlock()
		defer func() { mu.Lock(); now--; mu.Unlock() }()
		return json.RawMessage(`{"content":[]}`), nil
	}
	s := f.open()
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			if answer := s.Call(t.Context(), distinct(i)); !answer.OK {
				t.Errorf("got %+v, want ok", answer.Error)
			}
		})
	}
	wg.Wait()
	if summary := s.Close(); summary.Made != 64 {
		t.Errorf("calls: got %d, want 64", summary.Made)
	}
	if most > 4 {
		t.Errorf("calls at once: got %d, want at most 4", most)
	}
	if report, err := audit.Verify(f.dir, nil); err != nil || !report.OK() || report.Open != 0 {
		t.Errorf("the log: got %+v, %v", report, err)
	}
}
