package oauth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/internal/agekey"
	"github.com/airlock-mcp/airlock/internal/database"
	"github.com/airlock-mcp/airlock/internal/database/databasetest"
	"github.com/airlock-mcp/airlock/internal/secret"
)

// sourceOf returns a source of the sign-in of sampleRecord.
func sourceOf(t testing.TB, s *Store, principal string) *Source {
	t.Helper()
	source, err := New(Config{ServerID: "crm", URL: sampleURL}, &Options{Store: s, Principal: principal})
	if err != nil {
		t.Fatal(err)
	}
	return source
}

func isSignedIn(t testing.TB, s *Source) bool {
	t.Helper()
	state, err := s.State()
	if err != nil {
		t.Fatal(err)
	}
	return state.IsSignedIn
}

// issue 28: many processes store sign-ins at the same time, and none is lost.
func TestManyProcessesStoreSignIns(t *testing.T) {
	directory := t.TempDir()
	const processes, each = 4, 10
	var all sync.WaitGroup
	for i := range processes {
		s := StoreIn(t, directory)
		all.Go(func() {
			for j := range each {
				put(t, s, sampleRecord(fmt.Sprint("user ", i, " ", j)))
				put(t, s, sampleRecord("shared"))
			}
		})
	}
	all.Wait()
	list, err := StoreIn(t, directory).List(t.Context())
	if err != nil || len(list) != processes*each+1 {
		t.Errorf("got %d sign-ins, %v, want %d", len(list), err, processes*each+1)
	}
}

// A process uses what it has read for a while, unless it changes a sign-in itself.
func TestASignInThatWasReadIsFresh(t *testing.T) {
	directory := t.TempDir()
	here, there := storeWith(t, directory, time.Hour), StoreIn(t, directory)
	put(t, there, sampleRecord("ann"))
	ann := sourceOf(t, here, "ann")
	if !isSignedIn(t, ann) {
		t.Fatal("ann is not signed in")
	}
	if _, err := sourceOf(t, there, "ann").Logout(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !isSignedIn(t, ann) {
		t.Error("the database is asked again at once")
	}
	if _, err := ann.Logout(t.Context()); err != nil { // it is not relied on for changes
		t.Fatal(err)
	}
	put(t, here, sampleRecord("ann"))
	if !isSignedIn(t, ann) {
		t.Error("a change by another source of this process is not noticed")
	}
}

// issue 28: a process that was stopped during its turn stores nothing afterwards, and does not undo a sign-out.
func TestATurnThatIsOver(t *testing.T) {
	if databasetest.IsSQLite() {
		t.Skip("a lock of a file does not expire")
	}
	directory := t.TempDir()
	stopped, other := StoreIn(t, directory), StoreIn(t, directory)
	put(t, stopped, sampleRecord("ann"))
	late, err := stopped.turn(t.Context(), idOf("ann", "crm", sampleURL))
	if err != nil {
		t.Fatal(err)
	}
	other.exec(t, func(tx database.Tx) error {
		_, err := tx.ExecContext(t.Context(), "UPDATE sign_in_turn SET until = unixepoch()")
		return err
	})
	if out, err := sourceOf(t, other, "ann").Logout(t.Context()); err != nil || !out.WasSignedIn {
		t.Fatalf("got %+v, %v", out, err)
	}
	if _, err := late.save(sampleRecord("ann")); !errors.Is(err, errTurnOver) {
		t.Errorf("got %v, want that the turn is over", err)
	}
	if err := late.release(); err != nil {
		t.Error(err)
	}
	if list, err := other.List(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("got %v, %v, want nothing", list, err)
	}
}

// issue 28: while the database of a cluster is away, a sign-in is used for a minute, and not changed.
func TestTheDatabaseOfSignInsIsAway(t *testing.T) {
	if databasetest.IsSQLite() {
		t.Skip("a file is not away")
	}
	s := StoreIn(t, t.TempDir())
	r := sampleRecord("ann")
	r.Tokens.Refresh, r.Tokens.Issued, r.Tokens.Expires = "refresh", time.Now().Add(-time.Hour),
		time.Now().Add(time.Minute)
	put(t, s, r)
	ann := sourceOf(t, s, "ann")
	if !isSignedIn(t, ann) {
		t.Fatal("ann is not signed in")
	}
	db, err := s.opts.Database(t.Context())
	if err == nil {
		err = db.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	if got, err := ann.current(t.Context()); err != nil || got.Tokens.Access != "secret" {
		t.Errorf("got %v, %v, want the token that is due and valid", got, err)
	}
	if _, err := ann.Logout(t.Context()); !isAway(err) {
		t.Errorf("signing out: got %v, want that the database is away", err)
	}
	if _, err := sourceOf(t, s, "bob").current(t.Context()); err == nil {
		t.Error("a sign-in that was never read is taken for none")
	}
	ann.seen.at = ann.seen.at.Add(-grace)
	if _, err := ann.current(t.Context()); err == nil {
		t.Error("a sign-in is used for longer than a minute")
	}
}

// Calls that wait for the database wait for one read together, and nothing else of the sign-in waits.
func TestCallsShareARead(t *testing.T) {
	var reads atomic.Int32
	begun, release := make(chan struct{}, 1000), make(chan struct{})
	ann := sourceOf(t, NewStore(StoreOptions{Database: func(context.Context) (*database.DB, error) {
		reads.Add(1)
		begun <- struct{}{}
		<-release
		return nil, errors.New("it is away")
	}}), "ann")
	var all, started sync.WaitGroup
	call := func() {
		if _, err := ann.reload(); err == nil {
			t.Error("a sign-in was read without the database")
		}
	}
	all.Go(call)
	<-begun
	ann.remember(Challenge{})
	const callers = 100
	started.Add(callers)
	for range callers {
		all.Go(func() {
			started.Done()
			call()
		})
	}
	started.Wait()
	close(release)
	all.Wait()
	if got := reads.Load(); got > callers/4 { // two, and a few if the machine is busy
		t.Errorf("%d calls have read %d times", callers+1, got)
	}
}

// issue 28: a connection that was made while the database was away signs nothing, and goes on if there is no sign-in.
func TestAConnectionMadeWithoutTheDatabase(t *testing.T) {
	s := StoreIn(t, t.TempDir())
	ann := sourceOf(t, s, "ann")
	made := &binding{source: ann, failed: errors.New("the database is away")}
	if err := made.check(); err != nil {
		t.Errorf("without a sign-in: %v", err)
	}
	put(t, s, sampleRecord("ann"))
	if err := made.check(); err == nil || !strings.Contains(err.Error(), errChanged.Error()) {
		t.Errorf("with a sign-in that the connection was not made with: %v", err)
	}
}

// The sign-ins of a former version are imported once: a sign-out is not undone by the next start.
func TestSignInsOfAFormerVersion(t *testing.T) {
	directory := t.TempDir()
	key, err := agekey.LoadOrCreate(filepath.Join(directory, "keys", "oauth.key"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(directory, "sign-ins"), 0o700); err != nil {
		t.Fatal(err)
	}
	place := func(principal string) string {
		t.Helper()
		plain, err := json.Marshal(sampleRecord(principal))
		if err != nil {
			t.Fatal(err)
		}
		sealed, err := agekey.Seal(key.Recipient(), plain)
		path := filepath.Join(directory, "sign-ins", idOf(principal, "crm", sampleURL)+".age")
		if err == nil {
			err = os.WriteFile(path, sealed, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		return path
	}
	paths := []string{place("ann"), place("bob")}
	if err := os.WriteFile(filepath.Join(directory, "sign-ins", "damaged.age"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 3 {
		s := StoreIn(t, directory)
		all.Go(func() {
			if !isSignedIn(t, sourceOf(t, s, "ann")) {
				t.Error("ann is not signed in any more")
			}
		})
	}
	all.Wait()
	for _, path := range paths {
		if _, err := os.Stat(path); err == nil {
			t.Errorf("the file %q remains", path)
		}
	}
	if _, err := sourceOf(t, StoreIn(t, directory), "ann").Logout(t.Context()); err != nil {
		t.Fatal(err)
	}
	list, err := StoreIn(t, directory).List(t.Context())
	if err != nil || len(list) != 1 || list[0].Principal != "bob" {
		t.Errorf("got %v, %v, want bob", list, err)
	}
}

// issue 28: while connections to the database are lost, a sign-in whose change has succeeded is not lost.
func TestConnectionsOfSignInsAreLost(t *testing.T) {
	address := databasetest.Schema(t)
	db, err := database.OpenPostgreSQL(t.Context(), secret.New(address), "state", Schema)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	keys := t.TempDir()
	s := NewStore(StoreOptions{Database: func(context.Context) (*database.DB, error) { return db, nil },
		Key:       func() (*agekey.Key, error) { return agekey.LoadOrCreate(filepath.Join(keys, "own.key")) },
		Directory: filepath.Join(keys, "sign-ins")})
	var all sync.WaitGroup
	var stored atomic.Int32
	const each = 15
	for i := range 4 {
		all.Go(func() {
			for j := range each {
				r := sampleRecord(fmt.Sprint("user ", i, " ", j))
				turn, err := s.turn(t.Context(), idOf(r.Principal, r.ServerID, r.URL))
				if err != nil { // the answer to a commit was lost
					continue
				}
				if _, err := turn.save(r); err != nil {
					t.Error(err)
				}
				stored.Add(1)
				if source := sourceOf(t, s, r.Principal); !isSignedIn(t, source) {
					t.Errorf("%s is not signed in", r.Principal)
				}
				if err := turn.release(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 5 {
		databasetest.Terminate(t, address)
	}
	all.Wait()
	list, err := s.List(t.Context())
	if err != nil || len(list) != int(stored.Load()) || len(list) == 0 {
		t.Errorf("got %d sign-ins, %v, want %d", len(list), err, stored.Load())
	}
}
