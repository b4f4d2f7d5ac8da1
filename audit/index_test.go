package audit_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/audit"
)

// indexed writes a log of full files with records of few and of many principals, and returns the
// paths of its files, oldest first.
func indexed(t *testing.T, records int) (dir string, paths []string) {
	t.Helper()
	dir = t.TempDir()
	log, err := audit.Open(dir, &audit.Options{SegmentBytes: 64 << 10})
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(24, 0))
	for i := range records {
		who := fmt.Sprint("agent_", random.IntN(5))
		if i%97 == 0 {
			who = fmt.Sprint("agent_rare", i%5)
		}
		if i == 3 {
			who = "agent_first"
		}
		err := log.Note(t.Context(), audit.Record{Kind: audit.KindAction, Identity: audit.Identity{Principal: who},
			Act: audit.Act{ToolName: fmt.Sprint("t", i)}, Ruling: audit.Ruling{Decision: "APPROVED"}})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	paths, err = filepath.Glob(filepath.Join(dir, "audit-*"))
	if err != nil {
		t.Fatal(err)
	}
	return dir, paths
}

// page returns the tools of the n newest records of a principal before a record.
func page(t *testing.T, dir, principal string, before uint64, n int) (tools []string, last uint64) {
	t.Helper()
	_, err := audit.ScanBefore(dir, before, 1<<30, []string{`"principal":"` + principal + `"`},
		func(b audit.Brief, record func() (audit.Record, error)) (bool, error) {
			r, err := record()
			tools, last = append(tools, r.ToolName), r.Seq
			return len(tools) < n, err
		})
	if err != nil {
		t.Fatal(err)
	}
	return tools, last
}

// Pages of records are the same with and without indexes (issue 24).
func TestIndexesChangeNoPage(t *testing.T) {
	dir, paths := indexed(t, 2500)
	indexes, err := filepath.Glob(filepath.Join(dir, "index-*"))
	if err != nil || len(indexes) != len(paths)-1 || len(paths) < 5 {
		t.Fatalf("got %d indexes of %d files, %v", len(indexes), len(paths), err)
	}
	pages := func() (all []string) {
		for _, who := range []string{"agent_0", "agent_rare0", "agent_rare3", "agent_first", "agent_none"} {
			for _, n := range []int{1, 7, 5000} {
				for before := uint64(0); ; {
					tools, last := page(t, dir, who, before, n)
					all = append(all, fmt.Sprint(who, n, before, tools))
					if before = last; len(tools) < n {
						break
					}
				}
			}
		}
		return all
	}
	got := pages()
	for _, path := range indexes {
		remove(t, path)
	}
	if want := pages(); !slices.Equal(got, want) {
		t.Errorf("with indexes the pages are %q, without %q", got, want)
	}
}

// A page costs what its records cost, however many others there are: of full files no other record
// is read, so each could be damaged (issue 24).
func TestAPageReadsItsRecordsOnly(t *testing.T) {
	dir, paths := indexed(t, 2500)
	for _, path := range paths[:len(paths)-1] {
		content := readFile(t, path)
		for line := range bytes.Lines(content) {
			if !bytes.Contains(line, []byte("agent_rare0")) {
				for i := range line {
					line[i] = 'x'
				}
			}
		}
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tools, _ := page(t, dir, "agent_rare0", 0, 1000)
	var want []string
	for i := 2425; i >= 0; i -= 485 {
		want = append(want, fmt.Sprint("t", i))
	}
	if !slices.Equal(tools, want) {
		t.Errorf("got %v, want %v", tools, want)
	}
	if tools, _ := page(t, dir, "agent_none", 0, 1000); tools != nil {
		t.Errorf("got %v of nobody", tools)
	}
}

// An index that hides a record is found, and one of another file is not used (issue 24).
func TestAnIndexIsVerified(t *testing.T) {
	dir, paths := indexed(t, 1000)
	if report := verify(t, dir); !report.OK() {
		t.Fatalf("%+v", report.Findings)
	}
	path := filepath.Join(dir, "index-000000000001")
	content := readFile(t, path)
	write(t, path, string(content[:len(content)-8]))
	if report := verify(t, dir); len(report.Findings) != 1 || report.Findings[0].File != filepath.Base(path) {
		t.Errorf("got %+v, want one finding about %s", report.Findings, path)
	}
	second, err := os.ReadFile(filepath.Join(dir, "index-"+filepath.Base(paths[1])[6:18]))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"of another file": string(second), "empty": "", "short": "airlock"} {
		write(t, path, text)
		if tools, _ := page(t, dir, "agent_first", 0, 10); !slices.Equal(tools, []string{"t3"}) {
			t.Errorf("%s: got %v, want the record", name, tools)
		}
	}
	remove(t, path)
	log, err := audit.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	if report := verify(t, dir); !report.OK() {
		t.Errorf("%+v", report.Findings)
	}
}

// Retention removes indexes with their files (issue 24).
func TestRetentionRemovesIndexes(t *testing.T) {
	a := newAged(t)
	a.live(t, 60)
	a.now = a.now.Add(200 * 24 * time.Hour)
	a.live(t, 30)
	a.live(t, 1) // a start looks for old files
	var numbers [2][]string
	for i, prefix := range []string{"audit-", "index-"} {
		paths, err := filepath.Glob(a.path(prefix + "*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			numbers[i] = append(numbers[i], filepath.Base(path)[len(prefix):][:12])
		}
	}
	if r := a.verify(t, audit.VerifyOptions{}); len(r.Removed) == 0 || len(numbers[1]) == 0 {
		t.Fatalf("got %d removals and %d indexes", len(r.Removed), len(numbers[1]))
	}
	for _, number := range numbers[1] {
		if !slices.Contains(numbers[0], number) {
			t.Errorf("there is an index of the removed file %s", number)
		}
	}
}
