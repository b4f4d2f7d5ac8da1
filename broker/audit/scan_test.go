package audit_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/airlock-mcp/airlock/broker/audit"
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
		if err := log.Append(t.Context(), audit.Record{Kind: kind, Act: audit.Act{ToolName: fmt.Sprint("t", i)}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	scan := func(limit int64, n int) (names []string, whole bool) {
		whole, err := audit.Scan(dir, limit, []string{`"kind":"kernel"`}, func(b audit.Brief, record func() (audit.Record, error)) (bool, error) {
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
	failed := errors.New("failed")
	if _, err := audit.Scan(dir, 1<<20, []string{"kernel"}, func(audit.Brief, func() (audit.Record, error)) (bool, error) { return true, failed }); !errors.Is(err, failed) {
		t.Error(err)
	}
}
