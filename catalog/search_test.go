package catalog_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/internal/testenv"
)

// What people and models type, and a tool that must be among the first three.
func TestSearchFinds(t *testing.T) {
	s := corpus(t)
	tests := []struct{ name, query, want string }{
		{"a tool's exact name", "create_pull_request", "github-mcp-server create_pull_request"},
		{"words of a name", "pull request create", "github-mcp-server create_pull_request"},
		{"camel case", "createPullRequest", "github-mcp-server create_pull_request"},
		{"a typing error", "screnshot", "playwright-mcp-allcaps browser_take_screenshot"},
		{"another form of the word", "searching files", "server-filesystem search_files"},
		{"words written together", "knowledgegraph", "server-memory read_graph"},
		{"a sentence", "please show me the logs of the pod that crashed", "kubernetes-mcp-server pods_log"},
		{"a server's name", "slack channels", "server-slack slack_list_channels"},
		{"a parameter", "vault secret value", "azure keyvault_secret_create"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var got []string
			for _, e := range s.Search(catalog.Query{Text: test.query, Limit: 3}) {
				got = append(got, e.ServerID+" "+e.ToolName)
			}
			if !slices.Contains(got, test.want) {
				t.Errorf("search %q: got %q, want %q among them", test.query, got, test.want)
			}
		})
	}
}

func TestSearchAnswers(t *testing.T) {
	s := snapshot(t,
		catalog.Server{ID: "b", Tools: []catalog.Tool{tool(t, "b", "read_file", "Reads a file."),
			tool(t, "b", "weather", "Tells the forecast.")}},
		catalog.Server{ID: "a", Tools: []catalog.Tool{tool(t, "a", "read_file", "Reads a file.")}},
		catalog.Server{ID: "gone", Problem: "exited with status 1"})
	aFile := catalog.Entry{ServerID: "a", ToolName: "read_file", Description: "Reads a file."}
	bFile := catalog.Entry{ServerID: "b", ToolName: "read_file", Description: "Reads a file."}
	weather := catalog.Entry{ServerID: "b", ToolName: "weather", Description: "Tells the forecast."}
	tests := []struct {
		name  string
		query catalog.Query
		want  []catalog.Entry
	}{
		{"no text: all, in order", catalog.Query{}, []catalog.Entry{aFile, bFile, weather}},
		{"no text, one server", catalog.Query{ServerID: "b"}, []catalog.Entry{bFile, weather}},
		{"equal tools in order of servers", catalog.Query{Text: "read file"}, []catalog.Entry{aFile, bFile}},
		{"a limit", catalog.Query{Text: "read file", Limit: 1}, []catalog.Entry{aFile}},
		{"one server", catalog.Query{Text: "file", ServerID: "b"}, []catalog.Entry{bFile}},
		{"names only", catalog.Query{Text: "forecast", Detail: catalog.DetailName},
			[]catalog.Entry{{ServerID: "b", ToolName: "weather"}}},
		{"an unknown server", catalog.Query{Text: "file", ServerID: "z"}, []catalog.Entry{}},
		{"a missing server", catalog.Query{ServerID: "gone"}, []catalog.Entry{}},
		{"nothing fits", catalog.Query{Text: "zebra"}, []catalog.Entry{}},
		{"only signs", catalog.Query{Text: "?!* \x00"}, []catalog.Entry{}},
		{"stop words alone", catalog.Query{Text: "can you please help me"}, []catalog.Entry{}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, s.Search(test.query)); diff != "" {
				t.Errorf("answer differs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEntryHasOnlyFourFields(t *testing.T) {
	raw, err := json.Marshal(corpus(t).Search(catalog.Query{Limit: catalog.MaxLimit}))
	if err != nil {
		t.Fatal(err)
	}
	var entries []map[string]any
	if err := json.Unmarshal(raw, &entries); err != nil {
		t.Fatal(err)
	}
	if len(entries) != catalog.MaxLimit {
		t.Fatalf("got %d entries, want %d", len(entries), catalog.MaxLimit)
	}
	for _, entry := range entries {
		for key := range entry {
			if !slices.Contains([]string{"serverId", "toolName", "title", "description"}, key) {
				t.Errorf("got key %q in an entry", key)
			}
		}
	}
}

func TestLongDescriptionsAreCut(t *testing.T) {
	long := strings.Repeat("word ", 400)
	s := snapshot(t, catalog.Server{ID: "s", Tools: []catalog.Tool{tool(t, "s", "a", long),
		tool(t, "s", "b", strings.Repeat("é", 2000))}})
	for _, entry := range s.Search(catalog.Query{}) {
		if n := len([]rune(entry.Description)); n > 1002 || !strings.HasSuffix(entry.Description, " …") {
			t.Errorf("got %d characters ending in %q", n, entry.Description[len(entry.Description)-10:])
		}
	}
}

// A description that repeats a word a thousand times must not push a tool that
// is called so from the first place.
func TestStuffedDescriptionsDoNotWin(t *testing.T) {
	s := snapshot(t,
		catalog.Server{ID: "evil",
			Tools: []catalog.Tool{tool(t, "evil", "anything", strings.Repeat("send email ", 1000))}},
		catalog.Server{ID: "mail",
			Tools: []catalog.Tool{tool(t, "mail", "send_email", "Sends an email to one person.")}},
		catalog.Server{ID: "other", Tools: []catalog.Tool{tool(t, "other", "weather", "Tells the forecast.")}})
	got := s.Search(catalog.Query{Text: "send an email", Limit: 1})
	if len(got) != 1 || got[0].ServerID != "mail" {
		t.Errorf("got %+v, want mail's send_email first", got)
	}
}

// A deprecated tool ranks after its replacement and is still found by its name.
func TestDeprecatedToolsComeLater(t *testing.T) {
	s := snapshot(t, catalog.Server{ID: "files", Tools: []catalog.Tool{
		tool(t, "files", "read_file",
			"Read the complete contents of a file as text. DEPRECATED: Use read_text_file instead."),
		tool(t, "files", "read_text_file",
			"Read the complete contents of a file from the file system as text, in many encodings, with detailed "+
				"errors."),
	}})
	for query, want := range map[string]string{
		"read a file": "read_text_file", "read complete file contents as text": "read_text_file",
		"deprecated read": "read_file",
	} {
		found := s.Search(catalog.Query{Text: query})
		if len(found) != 2 || found[0].ToolName != want {
			t.Errorf("%q: got %+v, want both and %s first", query, found, want)
		}
	}
}

func TestWhatCountsAsDeprecated(t *testing.T) {
	tests := []struct {
		description string
		deprecated  bool
	}{
		{"[Deprecated] Reads.", true},
		{"Reads (deprecated).", true},
		{"DEPRECATED: use read_text.", true},
		{"Deprecated. Use read_text.", true},
		{"Reads. This tool is deprecated and will be removed.", true},
		{"Reads. Deprecated in favor of read_text.", true},
		{"Reads. Is now deprecated.", true},
		{"Obsolete: use read_text.", true},
		{"Lists deprecated APIs of a cluster.", false},
		{"Finds packages that are deprecated on the registry.", false},
		{"Deprecated packages are left out of the list.", false},
		{"Marks a package as deprecated.", false},
		{"Reads.", false},
	}
	for _, test := range tests {
		t.Run(test.description, func(t *testing.T) {
			other := regexp.MustCompile(`(?i)deprecated|obsolete`).ReplaceAllString(test.description, "ordinary")
			s := snapshot(t, catalog.Server{ID: "s", Tools: []catalog.Tool{
				tool(t, "s", "fetch_a", test.description), tool(t, "s", "fetch_b", other), // alike but for that
			}})
			if got := s.Search(catalog.Query{Text: "fetch"})[0].ToolName == "fetch_b"; got != test.deprecated {
				t.Errorf("got it behind the other %v, want %v", got, test.deprecated)
			}
		})
	}
}

func TestParseDetail(t *testing.T) {
	for text, want := range map[string]catalog.Detail{
		"": catalog.DetailDescription, "name": catalog.DetailName, "name+description": catalog.DetailDescription,
	} {
		if got, err := catalog.ParseDetail(text); err != nil || got != want {
			t.Errorf("ParseDetail(%q): got %q, %v, want %q", text, got, err, want)
		}
	}
	if _, err := catalog.ParseDetail("full"); err == nil {
		t.Errorf("got no error for an unknown detail")
	}
}

// bigSnapshot holds 1,500 tools: the corpus twice over, and some more.
func bigSnapshot(t testing.TB) *catalog.Snapshot {
	servers := slices.Clone(corpus(t).Servers())
	count := 0
	for i := 0; count < 1500; i++ {
		from := servers[i]
		if i < 20 {
			count += len(from.Tools)
		}
		copied := catalog.Server{ID: fmt.Sprintf("%s-%d", from.ID, i)}
		for _, tool := range from.Tools {
			if count == 1500 {
				break
			}
			tool.ServerID = copied.ID
			copied.Tools = append(copied.Tools, tool)
			count++
		}
		servers = append(servers, copied)
	}
	return snapshot(t, servers...)
}

// BenchmarkSearch reports the median search over 1,500 tools with the
// questions of a retrieval set.
func BenchmarkSearch(b *testing.B) {
	s := bigSnapshot(b)
	raw, err := os.ReadFile(filepath.Join(testenv.Corpus(b), "retrieval", "metatool", "queries.jsonl"))
	if err != nil {
		b.Fatal(err)
	}
	var queries []string
	for line := range bytes.Lines(raw) {
		var q struct{ Query string }
		if err := json.Unmarshal(line, &q); err != nil {
			b.Fatal(err)
		}
		queries = append(queries, q.Query)
	}
	if s.Len() != 1500 {
		b.Fatalf("got %d tools, want 1500", s.Len())
	}
	s.Search(catalog.Query{Text: "warm"})
	var times []time.Duration
	for i := 0; b.Loop(); i++ {
		start := time.Now()
		s.Search(catalog.Query{Text: queries[i%len(queries)]})
		times = append(times, time.Since(start))
	}
	slices.Sort(times)
	b.ReportMetric(float64(times[len(times)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(times[len(times)*99/100].Microseconds()), "p99-µs")
}

// BenchmarkFirstSearch includes building the index of a fresh snapshot.
func BenchmarkFirstSearch(b *testing.B) {
	servers := bigSnapshot(b).Servers()
	for b.Loop() {
		snapshot(b, servers...).Search(catalog.Query{Text: "create an issue"})
	}
}
