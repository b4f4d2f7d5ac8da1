package catalog_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/airlock-mcp/airlock/catalog"
)

func TestPatternFits(t *testing.T) {
	for _, test := range []struct {
		pattern catalog.Pattern
		name    string
		want    bool
	}{
		{"read_file", "read_file", true},
		{"read_file", "read_files", false},
		{"read_file", "Read_File", false},
		{"*", "", true},
		{"*", "anything.at/all", true},
		{"read_*", "read_file", true},
		{"read_*", "read_", true},
		{"read_*", "thread_x", false},
		{"*_file", "read_file", true},
		{"*_file", "read_file_2", false},
		{"a*a", "a", false},
		{"a*a", "aa", true},
		{"a*b*c", "abc", true},
		{"a*b*c", "aXbYbZc", true},
		{"a*b*c", "acb", false},
		{"**", "x", true},
		{"[ab]?", "a1", false},
		{"[ab]?", "[ab]?", true},
		{"", "", true},
		{"", "x", false},
	} {
		if got := test.pattern.Fits(test.name); got != test.want {
			t.Errorf("%q fits %q: got %v, want %v", test.pattern, test.name, got, test.want)
		}
	}
}

// profiled is a snapshot of three servers, one of which is missing, and one of
// whose tools poses as another server's.
func profiled(t *testing.T) *catalog.Snapshot {
	t.Helper()
	server := func(id string, names ...string) catalog.Server {
		var items []json.RawMessage
		for _, name := range names {
			items = append(items, json.RawMessage(
				`{"name":"`+name+`","description":"Does it.","inputSchema":{"type":"object"}}`))
		}
		tools, warnings := catalog.ParseTools(id, items)
		if len(warnings) > 0 {
			t.Fatal(warnings)
		}
		return catalog.Server{ID: id, Tools: tools}
	}
	s, err := catalog.NewSnapshot([]catalog.Server{
		server("files", "read_file", "read_dir", "delete_file", "crm_send_mail"),
		server("crm", "list_contacts", "send_mail"),
		{ID: "crm-old", Problem: "it exited with status 1"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestWhatIsOutsideAProfileDoesNotExist(t *testing.T) {
	whole := profiled(t)
	p := &catalog.Profile{Name: "reading", Servers: []catalog.ProfileServers{
		{Server: "files", Tools: []catalog.Pattern{"read_*"}}, {Server: "f*", Tools: []catalog.Pattern{"crm_*"}},
	}}
	view := whole.Within(p)
	if view.Len() != 3 || len(view.Servers()) != 1 || len(view.Missing("")) != 0 || view.Digest() == whole.Digest() {
		t.Errorf("got %d tools of %v, missing %v, want three of files", view.Len(), view.Servers(), view.Missing(""))
	}
	var unknown *catalog.UnknownError
	for _, hidden := range []struct{ server, tool string }{{"files", "delete_file"}, {"crm", "send_mail"},
		{"crm-old", "any"}, {"crm", "nothing"}} {
		_, err := view.Lookup(hidden.server, hidden.tool)
		if !errors.As(err, &unknown) || unknown.Problem != "" || len(unknown.Suggestions) > 0 {
			t.Errorf("%v: got %v, want that it is not there", hidden, err)
		}
		if _, err := view.Definition(hidden.server, hidden.tool); !errors.As(err, &unknown) {
			t.Errorf("the definition of %v: got %v, want that it is not there", hidden, err)
		}
	}
	if _, err := view.Lookup("files", "read_file"); err != nil {
		t.Error(err)
	}
	if found := view.Find(catalog.Query{Text: "delete a file, send mail, list contacts"}); len(found.Tools) > 3 {
		t.Errorf("got %v, want nothing from outside", found)
	}
	for _, found := range view.Find(catalog.Query{}).Tools {
		if !p.Shows(found.ServerID, found.ToolName) {
			t.Errorf("the search found %v", found)
		}
	}
	// The flag is that of the whole: fewer servers to imitate make no tool harmless.
	if flags := view.Flags("files", "crm_send_mail"); len(flags) != 1 {
		t.Errorf("got flags %v, want the imitation", flags)
	}
	if view.Flags("crm", "send_mail") != nil {
		t.Error("a tool outside has flags")
	}
	if whole.Within(p) != view || view.Within(p) != view || whole.Within(nil) != whole {
		t.Error("the view is made again and again")
	}
	if whole.Len() != 6 {
		t.Error("the whole snapshot has changed")
	}
	if nothing := whole.Within(&catalog.Profile{}); nothing.Len() != 0 || len(nothing.Servers()) != 0 {
		t.Errorf("the zero profile shows %v", nothing.Servers())
	}
}
