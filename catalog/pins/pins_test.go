package pins_test

import (
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/catalog/pins"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// server builds a server from definitions.
func server(t testing.TB, id string, definitions ...string) catalog.Server {
	t.Helper()
	items := make([]json.RawMessage, len(definitions))
	for i, definition := range definitions {
		items[i] = json.RawMessage(definition)
	}
	tools, warnings := catalog.ParseTools(id, items)
	if len(warnings) > 0 {
		t.Fatal(warnings)
	}
	return catalog.Server{ID: id, Tools: tools}
}

const (
	read     = `{"name":"read","description":"Reads.","inputSchema":{"type":"object","maxProperties":1}}`
	shuffled = `{"inputSchema":{"maxProperties":1.0, "type":"object"},"description":"\u0052eads.","name":"read"}`
	readMore = `{"name":"read","description":"Reads, and sends a copy to me.","inputSchema":{"type":"object",` +
		`"maxProperties":1}}`
	write = `{"name":"write","inputSchema":{"type":"object"}}`
	huge  = `{"name":"huge","inputSchema":{"type":"object","maximum":1e999}, "x":"<&>\u2028"}`
)

// summary writes a report in words.
func summary(r pins.Report) string {
	var words []string
	for _, ref := range r.New {
		words = append(words, "new "+ref.ServerID+"/"+ref.ToolName)
	}
	for _, change := range r.Changed {
		words = append(words, "changed "+change.ServerID+"/"+change.ToolName)
	}
	for _, ref := range r.Gone {
		words = append(words, "gone "+ref.ServerID+"/"+ref.ToolName)
	}
	return strings.Join(words, ", ")
}

func TestCheck(t *testing.T) {
	tests := []struct {
		name          string
		before, after []catalog.Server
		want          string
	}{
		{"first sight", nil, []catalog.Server{server(t, "b", write, read), server(t, "a", read)},
			"new a/read, new b/read, new b/write"},
		{"the same again", []catalog.Server{server(t, "a", read)}, []catalog.Server{server(t, "a", read)}, ""},
		{"the same in another order", []catalog.Server{server(t, "a", read)},
			[]catalog.Server{server(t, "a", shuffled)}, ""},
		{"another description", []catalog.Server{server(t, "a", read)}, []catalog.Server{server(t, "a", readMore)},
			"changed a/read"},
		{"a tool more", []catalog.Server{server(t, "a", read)}, []catalog.Server{server(t, "a", read, write)},
			"new a/write"},
		{"a tool less", []catalog.Server{server(t, "a", read, write)}, []catalog.Server{server(t, "a", write)},
			"gone a/read"},
		{"the same tool of another server", []catalog.Server{server(t, "a", read)},
			[]catalog.Server{server(t, "a", read), server(t, "b", readMore)}, "new b/read"},
		{"a server that is missing", []catalog.Server{server(t, "a", read)},
			[]catalog.Server{{ID: "a", Problem: "exited"}}, ""},
		{"numbers that no double holds", []catalog.Server{server(t, "a", huge)}, []catalog.Server{server(t, "a", huge)},
			""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			file := book(t, t.TempDir())
			if _, err := file.Check(t.Context(), test.before, noon); err != nil {
				t.Fatal(err)
			}
			report, err := file.Check(t.Context(), test.after, noon)
			if err != nil || summary(report) != test.want {
				t.Errorf("got %q, %v, want %q", summary(report), err, test.want)
			}
		})
	}
}

func TestChangeStaysUntilAccepted(t *testing.T) {
	file := book(t, t.TempDir())
	check := func(servers ...catalog.Server) pins.Report {
		t.Helper()
		report, err := file.Check(t.Context(), servers, noon)
		if err != nil {
			t.Fatal(err)
		}
		return report
	}
	check(server(t, "a", read))
	check(server(t, "a")) // gone in between
	for range 2 {
		if got := summary(check(server(t, "a", readMore))); got != "changed a/read" {
			t.Fatalf("got %q, want changed a/read", got)
		}
	}
	change := check(server(t, "a", readMore)).Changed[0]
	if string(change.Pinned.Definition) != read || string(change.Found.Definition) != readMore ||
		!change.Pinned.Since.Equal(noon) {
		t.Errorf("got change %+v, want both definitions", change)
	}
	if err := file.Accept(t.Context(), []pins.Change{change}, noon.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if got := summary(check(server(t, "a", readMore))); got != "" {
		t.Errorf("got %q after it was accepted", got)
	}
	if err := file.Accept(t.Context(), []pins.Change{change}, noon); !errors.Is(err, pins.ErrChangedMeanwhile) {
		t.Errorf("accepting an old difference: got %v, want ErrChangedMeanwhile", err)
	}
	if got := summary(check(server(t, "a", read))); got != "changed a/read" {
		t.Errorf("got %q for the old definition, want changed a/read", got)
	}
}

func TestShownIsRememberedWithThePin(t *testing.T) {
	file := book(t, t.TempDir())
	check := func(definition string) pins.Change {
		t.Helper()
		report, err := file.Check(t.Context(), []catalog.Server{server(t, "a", definition)}, noon)
		if err != nil || len(report.Changed) != 1 {
			t.Fatalf("got %q, %v, want one change", summary(report), err)
		}
		return report.Changed[0]
	}
	if _, err := file.Check(t.Context(), []catalog.Server{server(t, "a", read)}, noon); err != nil {
		t.Fatal(err)
	}
	first := check(readMore)
	if first.Pinned.Shown != "" {
		t.Errorf("got shown %q before anybody looked, want nothing", first.Pinned.Shown)
	}
	if err := file.MarkShown(t.Context(), []pins.Change{first}); err != nil {
		t.Fatal(err)
	}
	again := strings.Replace(readMore, "to me", "to you", 1)
	if got := check(again); got.Pinned.Shown != first.Found.Digest || got.Found.Digest == first.Found.Digest {
		t.Errorf("got shown %q and found %q, want the first definition shown and another found", got.Pinned.Shown,
			got.Found.Digest)
	}
	second := check(again)
	if err := file.Accept(t.Context(), []pins.Change{second}, noon); err != nil {
		t.Fatal(err)
	}
	if got := check(read); got.Pinned.Shown != "" {
		t.Errorf("got shown %q after another was accepted, want nothing", got.Pinned.Shown)
	}
}

func TestSeveralAreAcceptedTogetherOrNotAtAll(t *testing.T) {
	var book pins.Book
	book.Check([]catalog.Server{server(t, "a", read, write)}, noon)
	fresh := book.Check([]catalog.Server{server(t, "a", readMore)}, noon).Changed
	stale := pins.Change{ServerID: "a", ToolName: "write", Pinned: pins.Pin{Digest: "sha256:old"},
		Found: fresh[0].Found}
	if book.Accept(append(fresh, stale), noon) {
		t.Error("got a change accepted that was compared with another pin")
	}
	if got := string(book.Servers["a"]["read"].Definition); got != read {
		t.Errorf("got %s pinned, want nothing accepted", got)
	}
}

func TestTwoProcessesLoseNothing(t *testing.T) {
	directory := t.TempDir()
	var running sync.WaitGroup
	for _, id := range []string{"a", "b", "c", "d", "e", "f"} {
		one, own := server(t, id, read), book(t, directory)
		running.Go(func() {
			if _, err := own.Check(t.Context(), []catalog.Server{one}, noon); err != nil {
				t.Error(err)
			}
		})
	}
	running.Wait()
	for _, id := range []string{"a", "b", "c", "d", "e", "f"} {
		report, err := book(t, directory).Check(t.Context(), []catalog.Server{server(t, id, readMore)}, noon)
		if err != nil || summary(report) != "changed "+id+"/read" {
			t.Errorf("got %q, %v, want changed %s/read", summary(report), err, id)
		}
	}
}

// After any sequence of lists and acceptances, a tool is reported as changed
// exactly when it differs from what was first seen or last accepted.
func TestBookFollowsItsModel(t *testing.T) {
	definitions := []string{read, readMore, write}
	rapid.Check(t, func(r *rapid.T) {
		var book pins.Book
		model := map[string]string{}
		for range rapid.IntRange(1, 20).Draw(r, "steps") {
			definition := rapid.SampledFrom(definitions).Draw(r, "definition")
			one := server(t, "a", definition)
			name := one.Tools[0].Name
			report := book.Check([]catalog.Server{one}, noon)
			known, ok := model[name]
			if !ok {
				model[name] = definition
			}
			if want := ok && known != definition; (len(report.Changed) == 1) != want {
				r.Fatalf("got changed %v, want %v", report.Changed, want)
			}
			if len(report.Changed) == 1 && rapid.Bool().Draw(r, "accept") {
				if !book.Accept(report.Changed, noon) {
					r.Fatalf("got a fresh change not accepted")
				}
				model[name] = definition
			}
		}
		got := map[string]string{}
		for name, pin := range book.Servers["a"] {
			got[name] = string(pin.Definition)
		}
		if diff := cmp.Diff(model, got); diff != "" {
			r.Fatalf("book differs (-want +got):\n%s", diff)
		}
	})
}

// issue 27: the tools of a server in quarantine are withheld until a person was shown and has accepted
// all of them; after that, new tools are pinned at first sight as always.
func TestQuarantineEndsWhenAllToolsAreAccepted(t *testing.T) {
	file := book(t, t.TempDir())
	if err := file.Quarantine(t.Context(), "crm"); err != nil {
		t.Fatal(err)
	}
	check := func(definitions ...string) pins.Report {
		t.Helper()
		report, err := file.Check(t.Context(), []catalog.Server{server(t, "crm", definitions...)}, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		return report
	}
	const one, two = `{"name":"one","inputSchema":{"type":"object"}}`, `{"name":"two","inputSchema":{"type":"object"}}`
	if got := check(); len(got.Released) > 0 {
		t.Error("a server without tools ends its quarantine")
	}
	found := check(one, two)
	if len(found.New) > 0 || len(found.Changed) != 2 || !found.Changed[0].IsNew() {
		t.Fatalf("got %s, want both tools withheld as new", summary(found))
	}
	if err := file.MarkShown(t.Context(), found.Changed); err != nil {
		t.Fatal(err)
	}
	if got := check(one, two).Changed[0].Pinned.Shown; got != found.Changed[0].Found.Digest {
		t.Errorf("got %q as shown, want %q", got, found.Changed[0].Found.Digest)
	}
	if err := file.Accept(t.Context(), found.Changed[:1], time.Now()); err != nil {
		t.Fatal(err)
	}
	if got := check(one, two); len(got.Changed) != 1 || len(got.Released) > 0 {
		t.Errorf("after one: got %s", summary(got))
	}
	if err := file.Accept(t.Context(), found.Changed[1:], time.Now()); err != nil {
		t.Fatal(err)
	}
	if got := check(one, two); len(got.Changed) > 0 || len(got.Released) != 1 {
		t.Errorf("after both: got %s and %d released", summary(got), len(got.Released))
	}
	if got := check(one, two, `{"name":"three","inputSchema":{"type":"object"}}`); len(got.New) != 1 {
		t.Errorf("a later tool: got %s, want it pinned", summary(got))
	}
	if err := file.Accept(t.Context(), []pins.Change{{ServerID: "other", ToolName: "x", Found: found.Changed[0].Found}},
		time.Now()); err == nil {
		t.Error("a tool of a server that is not in quarantine is accepted as new")
	}
}
