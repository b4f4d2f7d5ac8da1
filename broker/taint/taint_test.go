package taint_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/broker/taint"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/database"
	"github.com/airlock-mcp/airlock/internal/database/databasetest"
	"github.com/airlock-mcp/airlock/internal/procfs"
	"github.com/airlock-mcp/airlock/internal/testenv"
)

// openAt opens the store of one process in a state directory.
func openAt(t *testing.T, directory string, clock *testenv.Clock) *taint.Store {
	t.Helper()
	db, err := databasetest.Open(t.Context(), filepath.Join(directory, "state.db"), taint.Schema)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return taint.New(func(context.Context) (*database.DB, error) { return db, nil }, clock.Now)
}

func ann(lineage string) caller.Caller {
	return caller.Caller{Principal: "ann", Kind: caller.Local, Session: "ses_1", Lineage: lineage}
}

func expect(t *testing.T, what string, s *taint.Store, who caller.Caller, want ...string) {
	t.Helper()
	got, err := s.Servers(t.Context(), who)
	slices.Sort(got)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%s: got %v, %v, want %v", what, got, err, want)
	}
}

func add(t *testing.T, s *taint.Store, who caller.Caller, servers ...string) {
	t.Helper()
	for _, server := range servers {
		if err := s.Add(t.Context(), who, server); err != nil {
			t.Fatal(err)
		}
	}
}

// Two processes see the same rows, which end a day after the last use of the conversation.
func TestRowsOfACredential(t *testing.T) {
	directory, clock := t.TempDir(), testenv.NewClock(time.Now())
	first, second := openAt(t, directory, clock), openAt(t, directory, clock)
	one, other := ann("credential 1"), ann("credential 2")
	add(t, first, one, "crm", "files", "crm")
	expect(t, "in another process", second, one, "crm", "files")
	expect(t, "another credential", second, other)
	for range 3 {
		clock.Advance(taint.Keep - time.Second)
		expect(t, "used within a day", second, one, "crm", "files")
	}
	clock.Advance(taint.Keep + time.Second)
	expect(t, "not used for a day", second, one)
	add(t, second, one, "web")
}

// The rows of a host process end with the process, regardless of the time.
func TestRowsOfAProcess(t *testing.T) {
	clock := testenv.NewClock(time.Now())
	s := openAt(t, t.TempDir(), clock)
	name, err := procfs.Name(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	lives := ann(caller.ProcessLineage + name)
	add(t, s, lives, "crm")
	clock.Advance(100 * taint.Keep)
	expect(t, "a process that lives", s, lives, "crm")
	host := exec.Command("cat")
	if _, err := host.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := host.Start(); err != nil {
		t.Fatal(err)
	}
	if name, err = procfs.Name(host.Process.Pid); err != nil {
		t.Fatal(err)
	}
	ended := ann(caller.ProcessLineage + name)
	add(t, s, ended, "crm")
	expect(t, "while it lives", s, ended, "crm")
	_ = host.Process.Kill()
	_ = host.Wait()
	expect(t, "after its end", s, ended)
}

// issue 28: a process of another boot is one of this machine that has ended, or one of another node of a cluster.
func TestRowsOfAProcessOfAnotherMachine(t *testing.T) {
	clock := testenv.NewClock(time.Now())
	s := openAt(t, t.TempDir(), clock)
	other := ann(caller.ProcessLineage + "another-boot:1/1/1")
	add(t, s, other, "crm")
	if databasetest.IsSQLite() {
		expect(t, "this machine was restarted", s, other)
		return
	}
	expect(t, "another machine", s, other, "crm")
	clock.Advance(taint.Keep + time.Second)
	expect(t, "after a day", s, other)
}

// An account with too many conversations does not evict any: its new ones are unknown. Other accounts
// are not affected, and conversations that are over make room (issue 23).
func TestAnAccountIsBounded(t *testing.T) {
	clock := testenv.NewClock(time.Now())
	s := openAt(t, t.TempDir(), clock)
	for n := range taint.MaxLineages {
		add(t, s, ann(fmt.Sprintf("credential %d", n)), "crm")
	}
	expect(t, "the first", s, ann("credential 0"), "crm")
	if _, err := s.Servers(t.Context(), ann("credential new")); !errors.Is(err, taint.ErrFull) {
		t.Errorf("one more: got %v, want ErrFull", err)
	}
	bob := ann("credential bob")
	bob.Principal = "bob"
	expect(t, "another account", s, bob)
	clock.Advance(taint.Keep + time.Second)
	expect(t, "after a day", s, ann("credential new"))
}

func TestAnUnknownConversation(t *testing.T) {
	s := openAt(t, t.TempDir(), testenv.NewClock(time.Now()))
	if _, err := s.Servers(t.Context(), ann(caller.UnknownLineage)); !errors.Is(err, taint.ErrUnknown) {
		t.Errorf("got %v, want ErrUnknown", err)
	}
	failing := taint.New(func(context.Context) (*database.DB, error) { return nil, os.ErrPermission }, nil)
	if _, err := failing.Servers(t.Context(), ann("credential 1")); !errors.Is(err, os.ErrPermission) {
		t.Errorf("got %v, want the cause", err)
	}
}
