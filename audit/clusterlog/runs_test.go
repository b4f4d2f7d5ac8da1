package clusterlog_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/audit/clusterlog"
	"github.com/airlock-mcp/airlock/internal/objects/objectstest"
)

// record opens the log of a node, writes a record for each run and closes it.
func (c *cluster) record(t *testing.T, node string, runs ...string) {
	t.Helper()
	log, err := c.open(t, node)
	if err != nil {
		t.Fatal(err)
	}
	defer c.log.Close()
	for _, run := range runs {
		err := log.Append(t.Context(), audit.Record{Kind: audit.KindViolation, Identity: audit.Identity{RunID: run},
			Act: audit.Act{Arguments: []byte(`{"run_id":"run_x","seq":1}`)}, Detail: strings.Repeat("work ", 100)})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
}

func (c *cluster) copied(t *testing.T, run string) (records int, until time.Time, err error) {
	t.Helper()
	all, err := clusterlog.CopiedRun(t.Context(), c.db, c.key, c.copies.Objects, run, []string{"a", "b"})
	if err != nil {
		return 0, until, err
	}
	if all[0].Node != "a" || len(all[1].Records) > 0 || !all[1].Until.IsZero() {
		t.Errorf("run %s: got %+v", run, all)
	}
	for i, r := range all[0].Records {
		if r.RunID != run || i > 0 && r.Seq <= all[0].Records[i-1].Seq {
			t.Errorf("record %d of run %s: got %+v", i, run, r)
		}
	}
	return len(all[0].Records), all[0].Until, nil
}

// The records of a run are read from the copies of a lost log, and only from the files that have some (issue 28).
func TestTheRecordsOfARun(t *testing.T) {
	server := objectstest.Start(t)
	for name, tail := range map[string]bool{"full files": false, "replicated": true} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			c.keep(t, server, tail)
			other := []string{"run_2", "run_2", "run_2", "run_2", "run_2", "run_2", "run_2", "run_2"}
			began := time.Now().Truncate(time.Second)
			c.record(t, "a", append([]string{"run_1"}, other...)...)
			c.record(t, "a", append(other, "run_1")...)
			c.record(t, "a", append(other, "run_3")...) // in the file that is not full
			if err := os.RemoveAll(c.dir("a")); err != nil {
				t.Fatal(err)
			}
			newest := 0
			if tail {
				newest = 1
			}
			for run, want := range map[string]int{"run_1": 2, "run_3": newest, "run_4": 0, "run_x": 0} {
				if got, until, err := c.copied(t, run); err != nil || got != want || until.Before(began) {
					t.Errorf("%s: got %d records until %v, %v; want %d", run, got, until, err, want)
				}
			}
			var needed []string // the files that cannot be damaged, because they are read
			for _, file := range objectstest.Names(t, c.files, "audit") {
				path := filepath.Join(c.files, file)
				sealed, err := os.ReadFile(path)
				if err == nil {
					err = os.WriteFile(path, []byte("damaged"), 0o600)
				}
				if err != nil {
					t.Fatal(err)
				}
				switch got, _, err := c.copied(t, "run_1"); {
				case errors.Is(err, clusterlog.ErrUnreadable):
					needed = append(needed, path)
					if err := os.WriteFile(path, sealed, 0o600); err != nil {
						t.Fatal(err)
					}
				case err != nil || got != 2:
					t.Errorf("without %s: got %d records, %v", file, got, err)
				}
			}
			if len(needed) != 2 {
				t.Fatalf("for the two records of a run, the files %q are read", needed)
			}
			if err := os.Remove(needed[0]); err != nil {
				t.Fatal(err)
			}
			if got, _, err := c.copied(t, "run_1"); err != nil || got != 1 {
				t.Errorf("without a file that is too old: got %d records, %v", got, err)
			}
		})
	}
}
