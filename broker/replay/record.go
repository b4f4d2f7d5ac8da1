package replay

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"sync"

	"filippo.io/age"
)

// maxRecording is the most bytes that a recording holds; a run that is answered
// more cannot be replayed.
const maxRecording = 1 << 30

// Recording is a run that is being recorded. Methods may be called concurrently.
type Recording struct {
	mu     sync.Mutex // guards all below
	file   *os.File
	sealed io.WriteCloser
	path   string
	count  int
	size   int64
	failed error
}

// Create begins a recording.
func (s *Store) Create(head Head) (*Recording, error) {
	path, err := s.path(head.RunID)
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path+draftSuffix, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("recording %q: %w", head.RunID, err)
	}
	sealed, err := age.Encrypt(f, s.identity.Recipient())
	if err != nil {
		return nil, errors.Join(fmt.Errorf("recording %q: %w", head.RunID, err), f.Close(), os.Remove(f.Name()))
	}
	r := &Recording{file: f, sealed: sealed, path: path}
	if err := r.put(line{Head: &head}); err != nil {
		return nil, errors.Join(err, r.Discard())
	}
	return r, nil
}

// Answered adds one exchange. A recording that could not be written stays
// unfinished: Close says why.
func (r *Recording) Answered(e Exchange) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.count++
	return r.put(line{Exchange: &e})
}

func (r *Recording) put(l line) error {
	if r.failed != nil {
		return r.failed
	}
	text, err := json.Marshal(l)
	if err == nil {
		if r.size += int64(len(text)) + 1; r.size > maxRecording {
			err = fmt.Errorf("it would hold more than %d bytes", maxRecording)
		}
	}
	if err == nil {
		_, err = r.sealed.Write(append(text, '\n'))
	}
	if err != nil {
		r.failed = fmt.Errorf("recording: %w", err)
	}
	return r.failed
}

// Close ends the recording with the digest of the run's result. Only then it
// can be replayed.
func (r *Recording) Close(outputDigest string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	err := r.put(line{End: &ending{outputDigest, r.count}})
	if err == nil {
		err = errors.Join(r.sealed.Close(), r.file.Sync())
	}
	err = errors.Join(err, r.file.Close())
	if err == nil {
		err = os.Rename(r.file.Name(), r.path)
	}
	if err != nil {
		return errors.Join(err, removeIfThere(r.file.Name()))
	}
	return nil
}

// Discard throws the recording away.
func (r *Recording) Discard() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return errors.Join(r.file.Close(), removeIfThere(r.file.Name()))
}

func removeIfThere(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Load reads the recording of a run.
func (s *Store) Load(run string) (*Tape, error) {
	path, err := s.path(run)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("loading %q: %w", run, ErrNotFound)
	}
	if err != nil {
		return nil, fmt.Errorf("loading %q: %w", run, err)
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || s.expired(info) {
		return nil, fmt.Errorf("loading %q: %w", run, ErrNotFound)
	}
	plain, err := age.Decrypt(f, s.identity)
	if err != nil {
		return nil, fmt.Errorf("loading %q: %w", run, err)
	}
	tape, err := read(plain)
	if err != nil {
		return nil, fmt.Errorf("loading %q: %w", run, err)
	}
	if tape.RunID != run {
		return nil, fmt.Errorf("loading %q: it is the recording of %q", run, tape.RunID)
	}
	return tape, nil
}

// read reads a recording's lines. One without its end is an error.
func read(plain io.Reader) (*Tape, error) {
	in := json.NewDecoder(io.LimitReader(bufio.NewReaderSize(plain, 64<<10), maxRecording))
	in.DisallowUnknownFields()
	tape := &Tape{}
	for n := 0; ; n++ {
		var l line
		if err := in.Decode(&l); err != nil {
			return nil, errors.New("the recording is incomplete or damaged")
		}
		switch {
		case n == 0 && l.Head != nil:
			tape.Head = *l.Head
		case n > 0 && l.Exchange != nil:
			tape.Exchanges = append(tape.Exchanges, *l.Exchange)
		case n > 0 && l.End != nil && l.End.Exchanges == len(tape.Exchanges):
			tape.OutputDigest = l.End.OutputDigest
			slices.SortFunc(tape.Exchanges, func(a, b Exchange) int { return a.Number - b.Number })
			return tape, nil
		default:
			return nil, errors.New("the recording is incomplete or damaged")
		}
	}
}
