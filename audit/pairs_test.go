package audit_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/airlock-mcp/airlock/audit"
)

// Each file of the log takes the place of each other one, as a copy, under another name
// or as a second name. Where the records are no longer what they were, that is found, and
// Airlock itself never writes over one.
func TestAFileInThePlaceOfAnother(t *testing.T) {
	v := newVictim(t)
	was := allRecords(t, v.dir)
	var names []string
	for _, path := range v.files(t) {
		names = append(names, filepath.Base(path))
	}
	names = append(names, "head", "checkpoints", "tree", "lock")
	ways := map[string]func(from, to string) error{
		"is copied over": func(from, to string) error {
			content, err := os.ReadFile(from)
			return errors.Join(err, os.WriteFile(to, content, 0o600))
		},
		"is renamed to":         os.Rename,
		"gets as a second name": func(from, to string) error { return errors.Join(os.Remove(to), os.Link(from, to)) },
	}
	for way, do := range ways {
		for _, from := range names {
			for _, to := range slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == from }) {
				v.restore(t)
				before := recovered(v.dir)
				if err := do(v.path(from), v.path(to)); err != nil {
					t.Fatal(err)
				}
				changed := !bytes.Equal(allRecords(t, v.dir), was)
				report, err := audit.Verify(v.dir, &audit.VerifyOptions{Keys: v.keys})
				if changed && err == nil && report.OK() {
					t.Errorf("%s %s %s: verify finds nothing", from, way, to)
				}
				l, err := audit.Open(v.dir, v.opts())
				if err != nil {
					continue
				}
				l.Close()
				if !bytes.HasPrefix(allRecords(t, v.dir), was) && recovered(v.dir) == before {
					t.Errorf("%s %s %s: the next start finds nothing", from, way, to)
				}
				if report, err := audit.Verify(v.dir, &audit.VerifyOptions{Keys: v.keys, Partial: true}); err != nil ||
					!report.OK() {
					t.Errorf("%s %s %s: the start was accepted, and then verify finds %+v, %v", from, way, to,
						report.Findings, err)
				}
			}
		}
	}
}

// allRecords returns the bytes of all files with records, in their order.
func allRecords(t *testing.T, dir string) []byte {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "audit-*.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	var all []byte
	for _, path := range paths {
		all = append(all, readFile(t, path)...)
	}
	return all
}
