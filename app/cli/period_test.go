package cli

import (
	"io"
	"path"
	"slices"
	"testing"
)

// Issue 27.11: every verb that lists entries with a time takes --since and --until, with one form of help. A new verb
// with the name list needs them, too, unless its entries have no time.
func TestListsTakeAPeriod(t *testing.T) {
	timeless := []string{"servers list", "tools list", "images list"}
	dated := []string{"runs list", "tokens list", "agents list", "agents reputation", "agents show", "approvals list",
		"approvals grants", "audit access",
		"audit report", "audit tail", "audit show", "audit export", "audit erase", "costs"}
	whole, _ := newWholeParser(io.Discard, io.Discard)
	for _, verb := range whole.Model.Leaves(true) {
		name := verb.Path()
		help := map[string]string{}
		for _, flag := range verb.Flags {
			help[flag.Name] = flag.Help
		}
		if wants := slices.Contains(dated, name) || verb.Name == "list" && !slices.Contains(timeless, name); !wants {
			continue
		}
		dated = slices.DeleteFunc(dated, func(one string) bool { return one == name })
		for flag, form := range map[string]string{"since": "Only what * since: *",
			"until": "Only what * before that time."} {
			if fits, _ := path.Match(form, help[flag]); !fits {
				t.Errorf("airlock %s --%s: got the help %q, want %q", name, flag, help[flag], form)
			}
		}
	}
	if len(dated) > 0 {
		t.Errorf("no verbs: %q", dated)
	}
}
