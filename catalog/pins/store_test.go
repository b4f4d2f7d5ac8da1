package pins_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/catalog/pins"
	"github.com/airlock-mcp/airlock/internal/database"
	"github.com/airlock-mcp/airlock/internal/database/databasetest"
)

// book returns the book of another process with a state directory.
func book(t testing.TB, directory string) *pins.Store {
	t.Helper()
	return bookOf(t, directory, "")
}

func bookOf(t testing.TB, directory, scope string) *pins.Store {
	t.Helper()
	db := open(t, directory)
	return pins.NewStore(func(context.Context) (*database.DB, error) { return db, nil }, scope,
		filepath.Join(directory, scope+"pins.json"))
}

func open(t testing.TB, directory string) *database.DB {
	t.Helper()
	db, err := databasetest.Open(t.Context(), filepath.Join(directory, "state.db"), pins.Schema)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func TestDamagedPinsAreAnError(t *testing.T) {
	directory := t.TempDir()
	file, db := book(t, directory), open(t, directory)
	if _, err := file.Check(t.Context(), []catalog.Server{server(t, "a", read)}, noon); err != nil {
		t.Fatal(err)
	}
	stored := func(change []byte) (text string) {
		t.Helper()
		err := db.Update(t.Context(), func(tx database.Tx) error {
			if change != nil {
				if _, err := tx.ExecContext(t.Context(), "UPDATE pin SET tools = ?", change); err != nil {
					return err
				}
			}
			return tx.QueryRowContext(t.Context(), "SELECT tools FROM pin").Scan(&text)
		})
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	raw := stored(nil)
	for name, damaged := range map[string]string{
		"cut":             raw[:len(raw)/2],
		"empty":           "",
		"another content": strings.Replace(raw, "Reads.", "Sends.", 1),
		"another digest":  strings.Replace(raw, "sha256:", "sha256:0", 1),
	} {
		t.Run(name, func(t *testing.T) {
			stored([]byte(damaged))
			if _, err := file.Check(t.Context(), []catalog.Server{server(t, "a", readMore)}, noon); err == nil ||
				!strings.Contains(err.Error(), "damaged") {
				t.Errorf("got %v, want an error about damage", err)
			}
			if now := stored(nil); now != damaged {
				t.Error("got the pins changed, want them left for a person to look at")
			}
		})
	}
}

// issue 28: what one node accepts is accepted at all, and what one finds changed is looked at again by all.
func TestProcessesFollowEachOther(t *testing.T) {
	directory := t.TempDir()
	a, b := book(t, directory), book(t, directory)
	check := func(of *pins.Store, definition string) pins.Report {
		t.Helper()
		report, err := of.Check(t.Context(), []catalog.Server{server(t, "crm", definition)}, noon)
		if err != nil {
			t.Fatal(err)
		}
		return report
	}
	first := check(a, read)
	if again := check(b, read); len(again.New) > 0 || again.Generation != first.Generation {
		t.Errorf("got %+v at the other, want the same generation as %+v", again, first)
	}
	found := check(a, readMore)
	marked, err := a.MarkFound(t.Context(), found.Changed)
	if err != nil {
		t.Fatal(err)
	}
	if now, err := b.Generation(t.Context()); err != nil || now != marked || now <= first.Generation {
		t.Errorf("got the generation %d, %v, want %d", now, err, marked)
	}
	if got := check(b, read); len(got.Outdated) != 1 || got.Outdated[0] != "crm" {
		t.Errorf("got %+v, want that the list of the other may be old", got)
	}
	if got := check(b, readMore); summary(got) != "changed crm/read" || len(got.Outdated) > 0 {
		t.Errorf("got %+v, want the same change", got)
	}
	if err := b.Accept(t.Context(), found.Changed, noon); err != nil {
		t.Fatal(err)
	}
	if got := check(a, readMore); summary(got) != "" || got.Generation <= marked || len(got.Outdated) > 0 {
		t.Errorf("got %+v, want that it is accepted", got)
	}
}

// The pins of a former version are imported once, and those of one scope are not those of another.
func TestPinsOfAFormerVersion(t *testing.T) {
	const former = `{"servers":{"a":{"read":{"digest":"DIGEST","definition":` + read +
		`,"since":"2026-01-02T03:04:05Z"}}},"quarantined":{"new":{}}}`
	var pinned pins.Book
	pinned.Check([]catalog.Server{server(t, "a", read)}, noon)
	directory := t.TempDir()
	path := filepath.Join(directory, "onepins.json")
	text := strings.Replace(former, "DIGEST", pinned.Servers["a"]["read"].Digest, 1)
	if err := os.WriteFile(path, []byte(strings.Replace(text, "Reads.", "Sends.", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	servers := []catalog.Server{server(t, "a", readMore), server(t, "new", write)}
	if _, err := bookOf(t, directory, "one").Check(t.Context(), servers, noon); err == nil ||
		!strings.Contains(err.Error(), "damaged") {
		t.Errorf("got %v for a damaged file", err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		report, err := bookOf(t, directory, "one").Check(t.Context(), servers, noon)
		if err != nil || summary(report) != "changed a/read, changed new/write" {
			t.Errorf("got %q, %v, want both withheld", summary(report), err)
		}
		if _, err := os.Stat(path); err == nil {
			t.Error("the file remains")
		}
	}
	other, err := bookOf(t, directory, "other").Check(t.Context(), servers, noon)
	if err != nil || summary(other) != "new a/read, new new/write" {
		t.Errorf("another scope: got %q, %v", summary(other), err)
	}
}
