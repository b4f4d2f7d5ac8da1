package audit_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/airlock-mcp/airlock/audit"
)

func TestScanReadsFromTheEndAsFarAsItMust(t *testing.T) {
	dir := t.TempDir()
	log, err := audit.Open(dir, &audit.Options{SegmentBytes: 2 << 10})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 40 {
		kind := audit.KindKernel
		if i%2 == 0 {
			kind = audit.KindAction
		}
		if err := log.Append(t.Context(), audit.Record{Kind: kind,
			Act: audit.Act{ToolName: fmt.Sprint("t", i)}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	scan := func(limit int64, n int) (names []string, whole bool) {
		whole, err := audit.Scan(dir, limit, []string{`"kind":"kernel"`},
			func(b audit.Brief, record func() (audit.Record, error)) (bool, error) {
				r, err := record()
				if r.ToolName != b.ToolName || r.Seq != b.Seq || r.Time != b.Time || r.Kind != b.Kind {
					t.Errorf("%+v, %+v", r, b)
				}
				names = append(names, b.ToolName)
				return len(names) < n, err
			})
		if err != nil {
			t.Fatal(err)
		}
		return names, whole
	}
	if names, whole := scan(1<<20, 100); len(names) != 20 || !whole || names[0] != "t39" || names[19] != "t1" {
		t.Errorf("%v, %v", names, whole)
	}
	if names, whole := scan(1<<20, 3); fmt.Sprint(names) != "[t39 t37 t35]" || whole {
		t.Errorf("%v, %v", names, whole)
	}
	if names, whole := scan(1000, 100); len(names) == 0 || len(names) > 3 || whole {
		t.Errorf("%v, %v: a thousand bytes hold no more", names, whole)
	}
	before := func(number uint64, limit int64, n int) (names []string, whole bool) {
		whole, err := audit.ScanBefore(dir, number, limit, []string{`"kind":"kernel"`},
			func(b audit.Brief, _ func() (audit.Record, error)) (bool, error) {
				names = append(names, b.ToolName)
				return len(names) < n, nil
			})
		if err != nil {
			t.Fatal(err)
		}
		return names, whole
	}
	all, _ := before(0, 1<<20, 100)
	for i := range all { // page by page, from wherever the last one ended
		var number uint64
		if _, err := audit.Scan(dir, 1<<20, []string{all[i]},
			func(b audit.Brief, _ func() (audit.Record, error)) (bool, error) {
				number = b.Seq
				return b.ToolName != all[i], nil
			}); err != nil {
			t.Fatal(err)
		}
		rest, whole := before(number, 1<<20, 100)
		if !slices.Equal(rest, all[i+1:]) || !whole {
			t.Errorf("before record %d: got %v, %v, want %v", number, rest, whole, all[i+1:])
		}
		if next, _ := before(number, 1000, 100); len(all) > i+1 && (len(next) == 0 || next[0] != all[i+1]) {
			t.Errorf("before record %d within a thousand bytes: got %v, want %s first", number, next, all[i+1])
		}
	}
	failed := errors.New("failed")
	if _, err := audit.Scan(dir, 1<<20, []string{"kernel"},
		func(audit.Brief, func() (audit.Record, error)) (bool, error) { return true, failed }); !errors.Is(
		err, failed) {
		t.Error(err)
	}
}
