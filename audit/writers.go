package audit

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	files "github.com/airlock-mcp/airlock/internal/store"
)

// writer is one Airlock process that has the log open. It holds a lock on its file while it
// lives, so that the next process can distinguish open calls of dead and running processes. The
// files are beside the keys: an attacker with write access to only the log's directory can
// neither create nor remove one.
type writer struct {
	id   string
	path string
	lock *files.Lock
}

// newWriter registers this process, whose records will begin no earlier than
// at the number from. Called with the log's lock held.
func newWriter(directory string, from uint64) (*writer, error) {
	if err := os.MkdirAll(directory, 0o700); err != nil {
		return nil, err
	}
	id := newWriterID()
	path := filepath.Join(directory, id)
	text := fmt.Appendf(nil, "%d\n%d %s\n%s\n%s\n", from, os.Getpid(), startTime(os.Getpid()), pidNamespace(), bootID())
	lock, err := files.CreateHeld(path, text, 0o600)
	if err != nil {
		return nil, err
	}
	return &writer{id, path, lock}, nil
}

// finished records that this process has no open acts.
func (w *writer) finished() { os.Remove(w.path) } // a remaining file is only checked again

func (w *writer) close() error { return w.lock.Release() }

// lives reports whether the process of a writer's file is alive: it holds the lock and, if
// visible to this process, is the process that took it.
func lives(path, text string) bool {
	if !files.IsHeld(path) {
		return false
	}
	lines := strings.Split(text, "\n")
	if len(lines) < 4 || lines[2] != pidNamespace() || lines[2] == "" {
		return true // it is starting, or in another container
	}
	number, started, _ := strings.Cut(lines[1], " ")
	pid, err := strconv.Atoi(number)
	return err == nil && lines[3] == bootID() && startTime(pid) == started
}

// startTime is when a process started, in the kernel's clock ticks; empty when
// there is no such process.
func startTime(pid int) string {
	stat, err := files.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	// The name in parentheses may hold anything; the start is the 20th field behind it.
	fields := strings.Fields(string(stat[strings.LastIndex(string(stat), ")")+1:]))
	if len(fields) < 20 {
		return ""
	}
	return fields[19]
}

func pidNamespace() string {
	name, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return ""
	}
	return name
}

// legacyWriters returns the directory in which earlier versions had these files, in the log's
// directory. They have no meaning now.
func legacyWriters(dir string) string { return filepath.Join(dir, "writers") }

// legacyWriterLives reports whether a process of an earlier version has the log open.
func legacyWriterLives(dir string) bool {
	entries, err := os.ReadDir(legacyWriters(dir))
	if err != nil {
		return false
	}
	for _, entry := range entries {
		if files.IsHeld(filepath.Join(legacyWriters(dir), entry.Name())) {
			return true
		}
	}
	return false
}

// unfinished is what was begun and not ended, by call or run ID.
type unfinished map[string]Record

// see takes note of one record.
func (u *unfinished) see(r Record) {
	if *u == nil {
		*u = unfinished{}
	}
	switch r.Kind {
	case KindIntent, KindApproval:
		(*u)[r.CallID] = r
	case KindOutcome:
		delete(*u, r.CallID)
	case KindRunStart:
		(*u)[r.RunID] = r
	case KindRunSuspend:
		if r.Durable { // another process continues it, and records its end in any case
			delete(*u, r.RunID)
		}
	case KindRunEnd:
		delete(*u, r.RunID)
	}
}

// closing returns a record of an unknown end for each, calls before runs.
func (u unfinished) closing(why, now string) []Record {
	begun := slices.SortedFunc(maps.Values(u), func(a, b Record) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Seq, b.Seq),
			cmp.Compare(a.CallID+a.RunID, b.CallID+b.RunID))
	})
	ends := make([]Record, 0, len(begun))
	for _, r := range begun {
		end := Record{Kind: KindOutcome, Time: now, Identity: r.Identity, Act: r.Act, Ruling: r.Ruling, Detail: why}
		end.Arguments = nil
		end.Outcome = OutcomeUnknown
		switch r.Kind {
		case KindApproval: // it was still being asked about, so it was never tried
			end.Outcome = OutcomeRefused
		case KindRunStart:
			end.Kind = KindRunEnd
		}
		ends = append(ends, end)
	}
	return ends
}

// writerPrefix begins the name of each process, and of its file.
const writerPrefix = "w_"

// endedEarly is why an open call has an unknown outcome.
const endedEarly = "Airlock ended while it was under way"

// closeUnfinished ends, as unknown, what dead processes began. Called with the
// log's lock held.
func (s *appender) closeUnfinished() error {
	entries, err := os.ReadDir(s.places.writers)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if entry.Name() == s.writer.id || !strings.HasPrefix(entry.Name(), writerPrefix) {
			continue
		}
		if err := s.closeWriter(filepath.Join(s.places.writers, entry.Name()), entry.Name()); err != nil {
			return fmt.Errorf("closing what process %q left open: %w", entry.Name(), err)
		}
	}
	return nil
}

func (s *appender) closeWriter(path, id string) error {
	text, err := files.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if lives(path, string(text)) {
		return nil
	}
	first, _, _ := strings.Cut(string(text), "\n")
	from, err := strconv.ParseUint(first, 10, 64)
	if err != nil {
		from = 1 // it died before it wrote the number
	}
	var left unfinished
	err = each(s.places.dir, from, id, func(r Record) error {
		if r.Writer == id {
			left.see(r)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if ends := left.closing(endedEarly, s.now()); len(ends) > 0 {
		if err := s.put(ends); err != nil {
			return err
		}
	}
	if err := s.disk.sync(); err != nil {
		return err
	}
	return os.Remove(path)
}
