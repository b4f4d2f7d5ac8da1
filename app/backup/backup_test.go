package backup_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/app/backup"
	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/internal/database"
	"github.com/airlock-mcp/airlock/internal/store"
)

const (
	childRole = "AIRLOCK_BACKUP_TEST_ROLE"
	childHome = "AIRLOCK_BACKUP_TEST_HOME"
	childFile = "AIRLOCK_BACKUP_TEST_FILE"
)

func TestMain(m *testing.M) {
	places, file := placesIn(os.Getenv(childHome)), os.Getenv(childFile)
	var err error
	switch os.Getenv(childRole) {
	case "":
		os.Exit(m.Run())
	case "backup":
		err = store.Create(file, 0o600, func(f *os.File) error {
			_, err := backup.Write(context.Background(), f, places, "test")
			return err
		})
	case "restore":
		var f *os.File
		if f, err = os.Open(file); err == nil {
			_, _, err = backup.Restore(context.Background(), f, places)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func placesIn(home string) backup.Places {
	return backup.Places{Home: home, Audit: store.Audit(home), Keys: store.Keys(home)}
}

const schema = `CREATE TABLE entry (n INTEGER PRIMARY KEY) STRICT`

// state is a state directory that is in use.
type state struct {
	backup.Places
	log *audit.Log
	db  *database.DB
}

func newState(t *testing.T, places backup.Places) *state {
	t.Helper()
	log, err := audit.Open(places.Audit, &audit.Options{Keys: places.Keys, SegmentBytes: 50_000,
		KeepArguments: &audit.ArgumentsOptions{Keep: time.Hour, Size: 1 << 20}})
	if err != nil {
		t.Fatal(err)
	}
	db, err := database.Open(t.Context(), filepath.Join(places.Home, "state.db"), schema)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(db.Close(), log.Close()); err != nil {
			t.Error(err)
		}
	})
	for name, content := range map[string]string{"pins/crm": "{}", "sign-ins/crm": "sealed", "images/python": "large"} {
		path := filepath.Join(places.Home, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content),
			0o600)); err != nil {
			t.Fatal(err)
		}
	}
	return &state{places, log, db}
}

// add records number n and then adds it to the database, as Airlock does.
func (s *state) add(ctx context.Context, n int) error {
	values, id := json.RawMessage(fmt.Sprintf(`{"n":%d}`, n)), strconv.Itoa(n)
	act := audit.Act{CallID: "call_" + id, Values: values, ArgumentsHash: s.log.Hash(values)}
	if err := s.log.Append(ctx, audit.Record{Kind: audit.KindIntent, Identity: audit.Identity{RunID: "run_" + id},
		Act: act}); err != nil {
		return err
	}
	if err := s.db.Update(ctx, func(tx database.Tx) error {
		_, err := tx.ExecContext(ctx, "INSERT INTO entry VALUES (?)", n)
		return err
	}); err != nil {
		return err
	}
	return s.log.Note(ctx, audit.Record{Kind: audit.KindOutcome, Identity: audit.Identity{RunID: "run_" + id},
		Act: act, Effect: audit.Effect{Outcome: audit.OutcomeOK}})
}

func (s *state) fill(t *testing.T, count int) {
	t.Helper()
	for n := range count {
		if err := s.add(t.Context(), n); err != nil {
			t.Fatal(err)
		}
	}
}

func (s *state) backup(t *testing.T) []byte {
	t.Helper()
	var to bytes.Buffer
	if _, err := backup.Write(t.Context(), &to, s.Places, "test"); err != nil {
		t.Fatal(err)
	}
	return to.Bytes()
}

// issue 27: a backup of a state that is written to meanwhile is consistent: all that its database
// has is in its log, the restored log can be continued, and kept arguments can be decrypted.
func TestABackupOfAStateInUse(t *testing.T) {
	for name, log := range map[string]string{"the log in the state": "", "the log elsewhere": t.TempDir()} {
		t.Run(name, func(t *testing.T) {
			from := placesIn(t.TempDir())
			if log != "" {
				from.Audit = filepath.Join(log, "before")
			}
			s := newState(t, from)
			ctx, stop := context.WithCancel(t.Context())
			var wait sync.WaitGroup
			begun := make(chan bool)
			for g := range 4 {
				wait.Go(func() {
					for n := g; ctx.Err() == nil; n += 4 {
						if err := s.add(context.WithoutCancel(ctx), n); err != nil {
							t.Error(err)
						}
						if n >= 400 && n < 404 {
							begun <- true
						}
					}
				})
			}
			for range 4 {
				<-begun
			}
			text := s.backup(t)
			stop()
			wait.Wait()

			to := placesIn(filepath.Join(t.TempDir(), "home"))
			if log != "" {
				to.Audit = filepath.Join(log, "deep", "after")
			}
			m, report, err := backup.Restore(t.Context(), bytes.NewReader(text), to)
			if err != nil {
				t.Fatal(err)
			}
			if !report.OK() || report.Records < 800 || len(report.Remarks) > 0 || len(m.Files) < 8 {
				t.Errorf("got %+v of %d files", report, len(m.Files))
			}
			if _, err := os.Stat(store.Images(to.Home)); err == nil {
				t.Error("images were backed up")
			}
			checkSame(t, newState(t, to))
		})
	}
}

// checkSame checks that what the database has is in the log, with its arguments.
func checkSame(t *testing.T, s *state) {
	t.Helper()
	var numbers []int
	err := s.db.View(t.Context(), func(tx database.Tx) error {
		rows, err := tx.QueryContext(t.Context(), "SELECT n FROM entry")
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var n int
			err = errors.Join(err, rows.Scan(&n))
			numbers = append(numbers, n)
		}
		return err
	})
	if err != nil || len(numbers) < 400 {
		t.Fatalf("got %d numbers, %v", len(numbers), err)
	}
	intents := map[string]bool{}
	if err := audit.Tail(t.Context(), s.Audit, 1<<20, false, func(r audit.Record) error {
		intents[r.RunID] = true
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for _, n := range numbers {
		if !intents["run_"+strconv.Itoa(n)] {
			t.Errorf("%d is in the database and not in the log", n)
		}
	}
	tree, err := audit.ShowFrom(s.Audit, 1, "run_7")
	misfits := 0
	if err == nil {
		misfits, err = audit.ShowArguments(s.Audit, s.Keys, tree)
	}
	if err != nil || misfits > 0 || string(tree.Calls[0].Arguments) != `{"n":7}` {
		t.Errorf("arguments: got %+v, %d, %v", tree, misfits, err)
	}
	if err := s.add(t.Context(), 1<<20); err != nil {
		t.Errorf("going on: %v", err)
	}
}

// issue 27: every changed byte, every missing end and everything added is found, and nothing is
// restored from such a file.
func TestADamagedBackupIsFound(t *testing.T) {
	s := newState(t, placesIn(t.TempDir()))
	s.fill(t, 5)
	sound := s.backup(t)
	if _, _, err := backup.Verify(t.Context(), bytes.NewReader(sound), t.TempDir()); err != nil {
		t.Fatal(err)
	}
	check := func(name string, text []byte) {
		home := filepath.Join(t.TempDir(), "home")
		_, _, err := backup.Restore(t.Context(), bytes.NewReader(text), placesIn(home))
		var damaged *backup.DamagedError
		if !errors.As(err, &damaged) {
			t.Errorf("%s: got %v, want a *DamagedError", name, err)
		}
		entries, _ := os.ReadDir(home)
		if slices.ContainsFunc(entries, func(e os.DirEntry) bool { return !store.IsRebuilt(e.Name()) }) {
			t.Errorf("%s: restored %v", name, entries)
		}
	}
	step := max(1, len(sound)/60)
	for at := 0; at < len(sound); at += step {
		changed := bytes.Clone(sound)
		changed[at] ^= 0xff
		check(fmt.Sprintf("byte %d of %d changed", at, len(sound)), changed)
		check(fmt.Sprintf("cut to %d of %d bytes", at, len(sound)), sound[:at])
	}
	check("without the last byte", sound[:len(sound)-1])
	check("with a byte more", append(bytes.Clone(sound), 0))
	check("twice", append(bytes.Clone(sound), sound...))
}

// A state directory with state is not overwritten; images are kept.
func TestARestoreNeedsAnEmptyDirectory(t *testing.T) {
	s := newState(t, placesIn(t.TempDir()))
	s.fill(t, 1)
	text := s.backup(t)
	var full *backup.NotEmptyError
	if _, _, err := backup.Restore(t.Context(), bytes.NewReader(text), s.Places); !errors.As(err, &full) {
		t.Errorf("got %v, want a *NotEmptyError", err)
	}
	to := placesIn(t.TempDir())
	image := filepath.Join(store.Images(to.Home), "python")
	if err := errors.Join(os.Mkdir(store.Images(to.Home), 0o700), os.WriteFile(image, []byte("built"),
		0o600)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := backup.Restore(t.Context(), bytes.NewReader(text), to); err != nil {
		t.Fatal(err)
	}
	if built, err := os.ReadFile(image); string(built) != "built" {
		t.Errorf("the image: got %q, %v", built, err)
	}
}

// issue 27: a backup that is killed leaves no file, or a whole one; a restore that is killed leaves
// no state, or one that is complete or does not start. Either can be repeated at once.
func TestKilledAtAnyTime(t *testing.T) {
	s := newState(t, placesIn(t.TempDir()))
	s.fill(t, 300)
	dir := t.TempDir()
	file := filepath.Join(dir, "kept")
	if err := os.WriteFile(file, s.backup(t), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, role := range []string{"backup", "restore"} {
		whole := false
		for i := 0; !whole; i++ {
			home, target := s.Home, filepath.Join(dir, fmt.Sprint("backup", i))
			if role == "restore" {
				home, target = filepath.Join(dir, fmt.Sprint("home", i)), file
			}
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), childRole+"="+role, childHome+"="+home, childFile+"="+target)
			cmd.Stderr = t.Output()
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			timer := time.AfterFunc(time.Duration(i*i)*time.Millisecond, func() { _ = cmd.Process.Kill() })
			whole = cmd.Wait() == nil
			if timer.Stop(); cmd.ProcessState.Exited() && !whole {
				t.Fatalf("%s: it failed", role)
			}
			if role == "backup" {
				checkFile(t, target, whole)
			} else {
				checkRestored(t, home, file, whole)
			}
		}
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".*")); len(left) > 0 {
		t.Errorf("left %v", left)
	}
}

func checkFile(t *testing.T, path string, whole bool) {
	t.Helper()
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) && !whole {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, _, err := backup.Verify(t.Context(), f, t.TempDir()); err != nil {
		t.Error(err)
	}
}

func checkRestored(t *testing.T, home, file string, whole bool) {
	t.Helper()
	if !whole {
		f, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		var full *backup.NotEmptyError
		_, _, err = backup.Restore(t.Context(), f, placesIn(home))
		if errors.As(err, &full) { // it was killed while it moved the parts
			if _, err := audit.Open(store.Audit(home), &audit.Options{Keys: store.Keys(home)}); err == nil {
				if _, err := os.Stat(filepath.Join(home, "state.db")); err != nil {
					t.Error("a part of a state starts")
				}
			}
			return
		}
		if err != nil {
			t.Errorf("a second restore: %v", err)
		}
	}
	report, err := audit.Verify(store.Audit(home), &audit.VerifyOptions{Keys: store.Keys(home)})
	if err != nil || !report.OK() {
		t.Errorf("the restored log: got %+v, %v", report, err)
	}
}

// A backup that cannot be written is an error, and copies of databases do not stay.
func TestAFullDisk(t *testing.T) {
	s := newState(t, placesIn(t.TempDir()))
	s.fill(t, 1)
	full := errors.New("no space left")
	if _, err := backup.Write(t.Context(), failing{full}, s.Places, "test"); !errors.Is(err, full) {
		t.Errorf("got %v, want %v", err, full)
	}
	if left, err := os.ReadDir(store.Staging(s.Home)); len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
	if _, _, err := backup.Verify(t.Context(), io.MultiReader(), t.TempDir()); err == nil {
		t.Error("an empty file is a backup")
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }
