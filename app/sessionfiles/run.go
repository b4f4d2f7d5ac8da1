package sessionfiles

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/cluster"
)

// Run is what one run gets of its session's files and leaves there. Methods may be
// called concurrently.
type Run struct {
	store *Store
	owner caller.Owner

	mu      sync.Mutex // guards all below
	given   []named    // the session's files when the run began
	loaded  int        // how many of their chunks were handed out, by file and chunk
	staged  []named    // the files that the run leaves, in order
	removed []string
	bytes   int64
	chunks  int
	saved   bool
	put     put
	failed  error // why nothing of the run is kept
}

// put are the files from Put.
type put struct {
	open  map[string]*file // by path, with the chunks that were not taken
	all   map[string]bool  // the paths of all
	bytes int64            // of all
}

// named is a file with its path.
type named struct {
	path string
	*file
}

// Begin returns the files of the owner's session as they are now. Close it when
// the run is over.
func (s *Store) Begin(owner caller.Owner) *Run {
	r := &Run{store: s, owner: owner}
	s.mu.Lock()
	defer s.mu.Unlock()
	if session := s.sessions[owner]; session != nil {
		for path, f := range session.files {
			f.users++
			r.given = append(r.given, named{path, f})
		}
	}
	slices.SortFunc(r.given, func(a, b named) int { return strings.Compare(a.path, b.path) })
	return r
}

// Files is how many files the session had when the run began.
func (r *Run) Files() int { return len(r.given) }

// Limits are those of the session.
func (r *Run) Limits() Limits { return r.store.limits }

// ErrTwice is returned if files are loaded or saved more than once.
var ErrTwice = errors.New("the files of a session are loaded and saved once")

// How much one answer of Load holds: bytes and pieces.
const (
	maxBatch  = 4 << 20
	maxPieces = 500
)

// Load returns the next pieces of the session's files; more is false with the last
// ones. After those the error is ErrTwice.
func (r *Run) Load() (pieces []Piece, more bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.loaded < 0 {
		return nil, false, ErrTwice
	}
	pieces = []Piece{} // none is a list, too
	at, bytes := 0, int64(0)
	for _, f := range r.given {
		for i, c := range f.chunks {
			if at++; at <= r.loaded {
				continue
			}
			if len(pieces) == maxPieces || len(pieces) > 0 && bytes+c.bytes > maxBatch {
				return pieces, true, nil
			}
			data, err := r.store.read(c)
			if err != nil {
				return nil, false, fmt.Errorf("reading a file of a session: %w", err)
			}
			pieces, bytes = append(pieces, Piece{f.path, data, i > 0}), bytes+c.bytes
			r.loaded = at
		}
	}
	r.loaded = -1
	return pieces, false, nil
}

// Save accepts parts of new or changed files, and the paths of removed ones. With last it
// applies all of them to the session atomically; if several runs change a file, the run that
// ends last wins. A *LimitError means that no change of the run is kept.
func (r *Run) Save(ctx context.Context, pieces []Piece, removed []string, last bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.saved {
		return ErrTwice
	}
	if r.failed == nil {
		r.failed = r.stageLocked(pieces, removed)
	}
	if r.failed == nil && last && len(r.staged) > 0 {
		r.failed = r.keep(ctx)
	}
	if last {
		r.saved = true
		if r.failed == nil {
			r.failed = r.store.merge(r.owner, r.staged, append(r.removed, removed...))
		}
		r.discardLocked()
		return r.failed
	}
	r.removed = append(r.removed, removed...)
	if r.failed != nil {
		r.discardLocked()
	}
	return r.failed
}

// keep makes this node the home of the session.
func (r *Run) keep(ctx context.Context) error {
	err := r.store.homes.Keep(ctx, r.owner.Session)
	if errors.Is(err, cluster.ErrElsewhere) {
		return &LimitError{"while the program ran, another one of its session left files at another node; run it again"}
	}
	return err
}

func (r *Run) stageLocked(pieces []Piece, removed []string) error {
	limits := r.store.limits
	if len(r.removed)+len(removed) > limits.Files {
		return &LimitError{"more files were removed than there can be"}
	}
	for _, p := range pieces {
		r.bytes += int64(len(p.Data))
		// Pieces may be small, and are files of the host's disk.
		if r.chunks++; r.chunks > 2*limits.Files+int(limits.Bytes>>18) || len(p.Data) > MaxPiece {
			return &LimitError{"they came in more pieces than there can be"}
		}
		if err := checkPath(p.Path); err != nil {
			return &LimitError{err.Error()}
		}
		if r.bytes > limits.Bytes {
			return tooMany(r.bytes, len(r.staged), limits)
		}
		c, err := r.store.write(p.Data)
		if err != nil {
			return err
		}
		n := len(r.staged)
		if !p.Append || n == 0 || r.staged[n-1].path != p.Path {
			r.staged, n = append(r.staged, named{p.Path, &file{users: 1}}), n+1
		}
		f := r.staged[n-1].file
		f.chunks, f.bytes = append(f.chunks, c), f.bytes+c.bytes
	}
	return nil
}

func tooMany(bytes int64, files int, limits Limits) error {
	return &LimitError{fmt.Sprintf("%d bytes in %d files are more than the %d bytes in %d files that it may hold",
		bytes, files, limits.Bytes, limits.Files)}
}

// discardLocked lets go of the staged files. Files that became part of the session
// have that as their user.
func (r *Run) discardLocked() {
	r.store.mu.Lock()
	defer r.store.mu.Unlock()
	for _, f := range r.staged {
		// Files that cannot be removed are removed with the process.
		_ = r.store.releaseLocked(f.file)
	}
	r.staged = nil
}

// Close lets go of what the run was given, and of what it had not saved to the
// end. Calling it twice is fine.
func (r *Run) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.saved, r.loaded = true, -1
	r.discardLocked()
	r.store.mu.Lock()
	defer r.store.mu.Unlock()
	for _, f := range r.given {
		// Files that cannot be removed are removed with the process.
		_ = r.store.releaseLocked(f.file)
	}
	r.given = nil
	for _, f := range r.put.open {
		_ = r.store.releaseLocked(f)
	}
	r.put.open = nil
}

func (r *Run) releaseLocked(f *file) {
	r.store.mu.Lock()
	defer r.store.mu.Unlock()
	_ = r.store.releaseLocked(f) // files that cannot be removed are removed with the process
}

// merge applies a run's changes to its session, or none of them if a limit is exceeded.
func (s *Store) merge(owner caller.Owner, staged []named, removed []string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	current := s.sessions[owner]
	if current == nil {
		current = &session{files: map[string]*file{}}
	}
	merged := make(map[string]*file, len(current.files)+len(staged))
	maps.Copy(merged, current.files)
	for _, path := range removed {
		delete(merged, path)
	}
	place(merged, staged)
	bytes := int64(0)
	for _, f := range merged {
		bytes += f.bytes
	}
	if bytes > s.limits.Bytes || len(merged) > s.limits.Files {
		return tooMany(bytes, len(merged), s.limits)
	}
	for _, f := range merged {
		f.users++
	}
	for _, f := range current.files {
		// Files that cannot be removed are removed with the process.
		_ = s.releaseLocked(f)
	}
	s.sessions[owner] = &session{files: merged}
	return nil
}

// place puts files into a tree. A path is a file or a directory: the later one
// takes the place of the other.
func place(tree map[string]*file, staged []named) {
	directories := map[string]bool{}
	for path := range tree {
		for _, parent := range parents(path) {
			directories[parent] = true
		}
	}
	for _, f := range staged {
		for _, parent := range parents(f.path) {
			delete(tree, parent)
			directories[parent] = true
		}
		if directories[f.path] {
			maps.DeleteFunc(tree, func(path string, _ *file) bool { return strings.HasPrefix(path, f.path+"/") })
			delete(directories, f.path)
		}
		tree[f.path] = f.file
	}
}

// parents returns the parent directories of a path.
func parents(path string) []string {
	var all []string
	for i, c := range path {
		if c == '/' {
			all = append(all, path[:i])
		}
	}
	return all
}
