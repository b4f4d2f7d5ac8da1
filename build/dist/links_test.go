package main

import (
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// The links of the installed documents lead to installed files, or to files of the sources (issue 27).
func TestLinksOfInstalledDocuments(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	entries, err := (&release{root: root}).documents()
	if err != nil {
		t.Fatal(err)
	}
	for _, place := range []func(entry) string{
		func(e entry) string { return e.system },
		func(e entry) string { return e.archive },
	} {
		exists := map[string]bool{}
		for _, e := range entries {
			for file := place(e); file != "" && file != "." && file != "/"; file = path.Dir(file) {
				exists[file] = true
			}
		}
		local, remote := 0, 0
		for _, e := range entries {
			if path.Ext(place(e)) != ".md" {
				continue
			}
			for _, link := range relative.FindAllSubmatch(e.content, -1) {
				local++
				if target := path.Join(path.Dir(place(e)), string(link[1])); !exists[target] {
					t.Errorf("%s links to %s, which is not installed", place(e), link[1])
				}
			}
			remote += strings.Count(string(e.content), "]("+sources)
		}
		if local < 50 || remote < 50 {
			t.Errorf("found %d links to installed files and %d to the sources: the test checks next to nothing",
				local, remote)
		}
	}
}
