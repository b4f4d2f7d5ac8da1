package audit_test

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/audit/witness"
)

// reported is a log with a call on each of the days before now, the oldest first.
func reported(t *testing.T, days int, change func(day int, r *audit.Record)) (dir string, now time.Time) {
	t.Helper()
	dir, now = filepath.Join(t.TempDir(), "audit"), time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	clock := now
	l, err := audit.Open(dir, &audit.Options{SegmentBytes: 4000, Now: func() time.Time { return clock }})
	if err != nil {
		t.Fatal(err)
	}
	for day := days; day > 0; day-- {
		clock = now.AddDate(0, 0, -day)
		run, call := fmt.Sprintf("run_%d", day), fmt.Sprintf("call_%d", day)
		who := audit.Identity{RunID: run, Principal: []string{"ann", "bob"}[day%2], CallerKind: "user"}
		act := audit.Act{CallID: call, ServerID: "crm", ToolName: "send"}
		ruling := audit.Ruling{Decision: "allow", Policies: []string{"mail"}, Approval: "APPROVED",
			Approver: "carl through the console"}
		for _, r := range []audit.Record{
			{Kind: audit.KindRunStart, Identity: who, RunFacts: audit.RunFacts{Host: "editor", Model: "large"}},
			{Kind: audit.KindIntent, Identity: who, Act: act, Ruling: ruling},
			{Kind: audit.KindOutcome, Identity: who, Act: act, Ruling: ruling,
				Effect: audit.Effect{Outcome: audit.OutcomeOK}},
			{Kind: audit.KindRunEnd, Identity: who, Effect: audit.Effect{Outcome: audit.OutcomeOK}},
		} {
			if r.Kind == audit.KindIntent {
				r.Arguments = json.RawMessage(`{"to":"hmac"}`)
			}
			if change != nil {
				change(day, &r)
			}
			if err := l.Append(context.Background(), r); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return dir, now
}

// Issue 27: a call that waited for a person was reported as allowed, though nobody had allowed it.
// Issue 27: a call that a person has to allow is not shown as allowed before one has.
func TestDecided(t *testing.T) {
	for _, tc := range []struct {
		ruling audit.Ruling
		want   string
	}{
		{audit.Ruling{Decision: "allow", Approval: "PENDING"}, "ask"},
		{audit.Ruling{Decision: "allow", Approval: "APPROVED", Approver: "ann"}, "allow"},
		{audit.Ruling{Decision: "allow", Approval: "NOT_REQUIRED"}, "allow"},
		{audit.Ruling{Decision: "deny", Approval: "PENDING"}, "deny"},
		{audit.Ruling{}, ""},
	} {
		if got := (audit.Record{Ruling: tc.ruling}).Decided(); got != tc.want {
			t.Errorf("%+v: got %q, want %q", tc.ruling, got, tc.want)
		}
	}
}

func TestNobodyHasAllowedAWaitingCall(t *testing.T) {
	dir, now := reported(t, 2, func(day int, r *audit.Record) {
		if day == 1 && r.Kind == audit.KindOutcome {
			r.Approval, r.Approver, r.Outcome = "PENDING", "", audit.OutcomeRefused
		}
	})
	period, err := audit.ParsePeriod("7d", "", now)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	if err := audit.EachRow(dir, audit.ReportOptions{Period: period, Server: "crm"}, func(r audit.Row) error {
		got = append(got, r.Decision+" "+r.Approver)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if want := []string{"allow carl through the console", "ask "}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// issue 27: one command answers who sent what where, on whose behalf, and who approved it.
func TestTheReport(t *testing.T) {
	dir, now := reported(t, 20, nil)
	period, err := audit.ParsePeriod("7d", "24h", now)
	if err != nil {
		t.Fatal(err)
	}
	var rows []audit.Row
	if err := audit.EachRow(dir, audit.ReportOptions{Period: period, Principal: "ann", Server: "crm"},
		func(r audit.Row) error { rows = append(rows, r); return nil }); err != nil {
		t.Fatal(err)
	}
	if len(rows) != 3 { // days 6, 4 and 2
		t.Fatalf("got %d rows, want 3: %+v", len(rows), rows)
	}
	want := audit.Row{Seq: rows[0].Seq, Time: rows[0].Time, Principal: "ann", CallerKind: "user", Host: "editor",
		Model: "large", RunID: "run_6", CallID: "call_6", Server: "crm", What: "send", Arguments: `{"to":"hmac"}`,
		Decision: "allow", Policies: "mail", Approval: "APPROVED", Approver: "carl through the console", Outcome: "ok"}
	if rows[0] != want {
		t.Errorf("got %+v, want %+v", rows[0], want)
	}
	for _, form := range audit.ReportForms() {
		var text bytes.Buffer
		if err := audit.WriteRows(&text, dir, form, audit.ReportOptions{Period: period}); err != nil {
			t.Fatal(err)
		}
		for _, part := range []string{"ann", "bob", "editor", "crm", "send", "carl through the console", "ok"} {
			if !strings.Contains(text.String(), part) {
				t.Errorf("%s has no %q:\n%s", form, part, text.String())
			}
		}
	}
}

// A call that has not ended, and one of an Airlock that was killed, are in the report.
func TestTheReportHasUnfinishedCalls(t *testing.T) {
	dir, _ := reported(t, 3, func(day int, r *audit.Record) {
		if day == 1 && r.Kind == audit.KindOutcome {
			r.CallID = "call_other"
		}
	})
	var outcomes []string
	if err := audit.EachRow(dir, audit.ReportOptions{}, func(r audit.Row) error {
		outcomes = append(outcomes, r.CallID+" "+r.Outcome+" "+r.Approver)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(outcomes, ","); !strings.Contains(got, "call_1 unknown carl") {
		t.Errorf("got %s", got)
	}
}

// issue 27: names and details that a server or an agent chose execute nothing: no formula in a
// spreadsheet, no escape sequence in a terminal, no markup in a browser.
func TestAReportOfHostileNames(t *testing.T) {
	hostile := []string{"=cmd|' /C calc'!A0", "+1+1", "-1+1", "@SUM(1)", "\t=1", "\r=1", " =1", "'=1", "\"=1", "＝1",
		"%1",
		"a;=1", "a\",=1", "\x1b]0;title\x07", "\x1b[2J", "\u009b2J", "a\u202eb", "a\nb", "a\r\nb",
		"</td><script>alert(1)</script>",
		"<img src=x onerror=alert(1)>", "{{.}}", "\u2028", "|calc", "\\x"}
	for _, name := range hostile {
		dir, _ := reported(t, 1, func(_ int, r *audit.Record) {
			r.Principal, r.ServerID, r.ToolName, r.Approver = name, name, name, name
			if r.Kind == audit.KindRunStart {
				r.Host = name
			}
		})
		for _, form := range audit.ReportForms() {
			var text bytes.Buffer
			if err := audit.WriteRows(&text, dir, form, audit.ReportOptions{}); err != nil {
				t.Fatal(err)
			}
			if i := strings.IndexFunc(text.String(), func(r rune) bool {
				return r < ' ' && r != '\n' && r != '\r' || r >= 0x7f && r < 0xa0 || r == 0x202e || r == 0x2028
			}); i >= 0 {
				t.Errorf("%q in %s: a control character %q", name, form, text.String()[i:min(text.Len(), i+4)])
			}
			switch form {
			case audit.ReportCSV:
				checkCells(t, name, text.String())
			case audit.ReportHTML:
				checkMarkup(t, name, text.String())
			case audit.ReportJSON:
				if !json.Valid(text.Bytes()) {
					t.Errorf("%q: it is not JSON: %s", name, text.String())
				}
			}
		}
	}
}

func checkCells(t *testing.T, name, text string) {
	t.Helper()
	lines, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil || len(lines) != 2 {
		t.Fatalf("%q: got %d lines, %v", name, len(lines), err)
	}
	for _, cell := range lines[1] {
		if first := strings.TrimLeft(cell, " \t"); first != "" && strings.ContainsAny(first[:1], "=+-@|%") {
			t.Errorf("%q: the cell %q is a formula", name, cell)
		}
	}
	if strings.Contains(strings.ReplaceAll(text, `""`, ""), `;=`) && !strings.Contains(text, `"a;=1"`) {
		t.Errorf("%q: a cell is not in quotes: %s", name, text)
	}
}

func checkMarkup(t *testing.T, name, text string) {
	t.Helper()
	tokens := html.NewTokenizer(strings.NewReader(text))
	for kind := tokens.Next(); kind != html.ErrorToken; kind = tokens.Next() {
		if token := tokens.Token(); token.Data == "script" || token.Data == "img" {
			t.Errorf("%q became the element %s", name, token)
		}
	}
}

// Times that a person may type.
func TestTimes(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]string{
		"7d": "2026-11-13T12:00:00Z", "2w": "2026-11-06T12:00:00Z", "90m": "2026-11-20T10:30:00Z",
		"2026-11-01": "2026-11-01T00:00:00Z", "2026-11-01T02:00:00+02:00": "2026-11-01T00:00:00Z",
		"0s": "2026-11-20T12:00:00Z",
	} {
		got, err := audit.ParseTime(text, now)
		if err != nil || got.UTC().Format(time.RFC3339) != want {
			t.Errorf("%q: got %v, %v, want %s", text, got, err, want)
		}
	}
	for _, text := range []string{"", "7", "d", "-7d", "-1h", "yesterday", "2026-13-01", "99999999999d", "1y"} {
		if got, err := audit.ParseTime(text, now); err == nil {
			t.Errorf("%q: got %v, want an error", text, got)
		}
	}
	if _, err := audit.ParsePeriod("1d", "2d", now); err == nil {
		t.Error("a period that ends before it begins is accepted")
	}
}

// A large log is streamed: the memory in use does not depend on its length.
func TestALargeReportIsStreamed(t *testing.T) {
	count := 20_000
	if os.Getenv("AIRLOCK_TEST_LARGE") != "" {
		count = 1_000_000
	}
	dir := filepath.Join(t.TempDir(), "audit")
	l, err := audit.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range count / 2 {
		act := audit.Act{CallID: fmt.Sprint("call_", i), ServerID: "crm", ToolName: "send"}
		for _, kind := range []audit.Kind{audit.KindIntent, audit.KindOutcome} {
			if err := l.Note(t.Context(), audit.Record{Kind: kind, Act: act}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	for _, form := range audit.ReportForms() {
		most, lines := uint64(0), 0
		w := writerFunc(func(b []byte) (int, error) {
			if lines += bytes.Count(b, []byte("\n")); lines%1000 < 50 {
				runtime.GC()
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				most = max(most, m.HeapAlloc)
			}
			return len(b), nil
		})
		if err := audit.WriteRows(w, dir, form, audit.ReportOptions{}); err != nil {
			t.Fatal(err)
		}
		if lines < count/2 || most > 16<<20 {
			t.Errorf("%s: %d lines, %d bytes in use", form, lines, most)
		}
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

// issue 27: an export to a file continues behind the last record that was sent, new records are
// followed, and a cursor of another log is refused.
func TestAnExportIsResumed(t *testing.T) {
	dir, _ := reported(t, 5, nil)
	out, cursor := filepath.Join(t.TempDir(), "out"), filepath.Join(t.TempDir(), "cursor")
	sink, err := witness.OpenSink(out)
	if err != nil {
		t.Fatal(err)
	}
	d := audit.Delivery{Format: audit.FormatJSONL, Cursor: cursor}
	if err := d.Deliver(t.Context(), dir, sink); err != nil {
		t.Fatal(err)
	}
	l, err := audit.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, stop := context.WithCancel(t.Context())
	d.Follow = true
	done := make(chan error)
	go func() { done <- d.Deliver(ctx, dir, stoppingSink{sink, stop}) }()
	for i := range 5 {
		if err := l.Append(t.Context(), intent(fmt.Sprint("new", i))); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Append(t.Context(), intent("last")); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	next := uint64(1)
	for line := range strings.Lines(string(text)) {
		var r audit.Record
		if err := json.Unmarshal([]byte(line), &r); err != nil || r.Seq != next {
			t.Fatalf("got record %d, %v, want %d", r.Seq, err, next)
		}
		next++
	}
	if next < 25 {
		t.Errorf("%d records were exported", next-1)
	}
	other, _ := reported(t, 30, nil)
	d.Follow = false
	if err := d.Deliver(t.Context(), other, sink); err == nil || !strings.Contains(err.Error(), "another log") {
		t.Errorf("a cursor of another log: got %v", err)
	}
}

// stoppingSink ends the delivery when the last record has arrived.
type stoppingSink struct {
	witness.Sink
	stop func()
}

func (s stoppingSink) Send(ctx context.Context, lines [][]byte) error {
	err := s.Sink.Send(ctx, lines)
	if bytes.Contains(bytes.Join(lines, nil), []byte(`"last"`)) {
		s.stop()
	}
	return err
}

// Records go to an OTLP endpoint in batches and to a syslog server one a message. An endpoint that
// refuses them gets them again.
func TestAnExportToAServer(t *testing.T) {
	dir, _ := reported(t, 5, nil)
	var bodies [][]byte
	refuse := true
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || refuse {
			refuse = false
			http.Error(w, "full", http.StatusServiceUnavailable)
			return
		}
		bodies = append(bodies, body)
		fmt.Fprint(w, "{}")
	}))
	defer server.Close()
	sink, err := witness.OpenSink(server.URL + "/v1/logs")
	if err != nil {
		t.Fatal(err)
	}
	d := audit.Delivery{Format: audit.FormatOTLP, Cursor: filepath.Join(t.TempDir(), "cursor")}
	if err := d.Deliver(t.Context(), dir, sink); err == nil || !strings.Contains(err.Error(), "503") {
		t.Errorf("got %v, want the refusal", err)
	}
	if err := d.Deliver(t.Context(), dir, sink); err != nil {
		t.Fatal(err)
	}
	var request struct{ ResourceLogs []json.RawMessage }
	if len(bodies) != 1 || json.Unmarshal(bodies[0], &request) != nil || len(request.ResourceLogs) < 20 {
		t.Errorf("got %d requests, %d records", len(bodies), len(request.ResourceLogs))
	}

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	received := make(chan []byte)
	go func() {
		conn, err := listener.Accept()
		if err == nil {
			text, readErr := io.ReadAll(conn)
			if err = errors.Join(readErr, conn.Close()); err == nil {
				received <- text
			}
		}
		close(received)
	}()
	if sink, err = witness.OpenSink("syslog+tcp://" + listener.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if err := (audit.Delivery{Format: audit.FormatOCSF}).Deliver(t.Context(), dir, sink); err != nil {
		t.Fatal(err)
	}
	if text := string(<-received); strings.Count(text, " airlock ") < 20 ||
		!strings.Contains(text, `"class_uid":6003`) {
		t.Errorf("the syslog server got %.300s", text)
	}
}

// A destination that Airlock cannot send to is named.
func TestBadDestinations(t *testing.T) {
	for _, address := range []string{"", "relative", "ftp://host/", "syslog+tcp://host", "https://",
		"syslog+unix://host/dev/log"} {
		if sink, err := witness.OpenSink(address); err == nil {
			t.Errorf("%q: got %v", address, sink)
		}
	}
}
