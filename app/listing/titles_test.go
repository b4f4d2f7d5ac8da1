package listing

import (
	"errors"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/broker/replay"
)

func TestTitles(t *testing.T) {
	call := []replay.Exchange{{ServerID: "crm", Name: "list"}}
	long := "# " + strings.Repeat("x", 95) + " SECRET"
	recordings := map[string]*replay.Recording{
		"comment":   {Head: replay.Head{Code: "\n# Count the notes\nprint(1)"}, Exchanges: call},
		"docstring": {Head: replay.Head{Code: `"""Count them."""` + "\nprint(1)"}},
		"lines":     {Head: replay.Head{Code: "\"\"\"\nCount them\n\"\"\"\nprint(1)"}},
		"block":     {Head: replay.Head{Code: "/*\n * Count them\n */\nlet x = 1"}},
		"script":    {Head: replay.Head{Code: "#!/usr/bin/env python3\n# -*- coding: utf-8 -*-\n# Count them\n"}},
		"call":      {Head: replay.Head{Code: "import os\n# later\n"}, Exchanges: call},
		"none":      {Head: replay.Head{Code: "print(1)"}},
		"cut":       {Head: replay.Head{Code: long}},
	}
	titles := newTitles(func(text string) string { return strings.ReplaceAll(text, "SECRET", "[redacted]") })
	load := func(run string) (*replay.Recording, error) {
		if recording := recordings[run]; recording != nil {
			return recording, nil
		}
		return nil, errors.New("not kept")
	}
	for run, want := range map[string]string{
		"comment": "Count the notes", "docstring": "Count them.", "block": "Count them", "lines": "Count them",
		"script": "Count them",
		"call":   "crm/list", "none": "",
	} {
		if got := titles.of(run, load); got != want {
			t.Errorf("%s: got %q, want %q", run, got, want)
		}
	}
	// The title is cut within a secret, and no part of the secret may appear.
	if got := titles.of("cut", load); strings.Contains(got, "SEC") {
		t.Errorf("got %q", got)
	}
	// A run whose recording is written later gets its title then.
	if got := titles.of("later", load); got != "" {
		t.Errorf("got %q", got)
	}
	recordings["later"] = recordings["comment"]
	if got := titles.of("later", load); got != "Count the notes" {
		t.Errorf("got %q for a recording that was written since", got)
	}
}
