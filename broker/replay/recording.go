package replay

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"sync"

	"filippo.io/age"

	"github.com/airlock-mcp/airlock/internal/canon"
	"github.com/airlock-mcp/airlock/internal/store"
	"github.com/airlock-mcp/airlock/internal/strictjson"
)

// maxRecording is the most bytes that a recording holds; a run that is answered
// more cannot be replayed.
const maxRecording = 1 << 30

// Recorder writes the recording of one run. Methods may be called concurrently.
type Recorder struct {
	store *Store
	head  Head
	tools func() ([]byte, error)
	path  string

	mu     sync.Mutex     // guards all below
	file   *os.File       // nil before the first exchange
	sealed io.WriteCloser // encrypts into file
	packed *gzip.Writer   // compresses into sealed
	count  int
	size   int64
	failed error
}

// Create starts a recording. It writes nothing before the first exchange or the end, because
// the run waits for this call and not for those. tools returns the tools of head's snapshot in
// the caller's format; it is called at the end, if they are not stored yet. If tools is nil,
// none are stored.
func (s *Store) Create(head Head, tools func() ([]byte, error)) (*Recorder, error) {
	path, err := s.path(head.RunID)
	if err != nil {
		return nil, err
	}
	return &Recorder{store: s, head: head, tools: tools, path: path}, nil
}

// Answered adds one exchange. If it cannot be written, the recording stays unfinished, and
// Close returns the error.
func (r *Recorder) Answered(e Exchange) error {
	text, err := encodeExchange(e)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.count++
	return r.write(text, err)
}

// Abandon leaves the recording unfinished. Close returns the reason.
func (r *Recorder) Abandon(reason error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	_ = r.write(nil, reason)
}

// write adds a line after the head. problem is the error of creating the text, or nil.
func (r *Recorder) write(text []byte, problem error) error {
	if r.file == nil && r.failed == nil {
		r.failed = r.open()
	}
	if r.failed == nil && problem != nil {
		r.failed = fmt.Errorf("recording: %w", problem)
	}
	if r.failed == nil {
		r.failed = r.put(text)
	}
	return r.failed
}

// encodeExchange returns the line of an exchange, whose arguments and answer go into it as they are:
// what encoding/json would make of them costs two more looks at every byte.
func encodeExchange(e Exchange) ([]byte, error) {
	if !json.Valid(e.Arguments) || !json.Valid(e.Answer) {
		return json.Marshal(line{Exchange: &e}) // returns the error
	}
	server, err := json.Marshal(e.ServerID)
	if err != nil {
		return nil, err
	}
	name, err := json.Marshal(e.Name)
	if err != nil {
		return nil, err
	}
	text := make([]byte, 0, len(e.Arguments)+len(e.Answer)+len(server)+len(name)+100)
	text = append(text, `{"exchange":{"number":`...)
	text = strconv.AppendInt(text, int64(e.Number), 10)
	text = append(append(text, `,"server_id":`...), server...)
	text = append(append(text, `,"name":`...), name...)
	text = append(append(text, `,"arguments":`...), e.Arguments...)
	text = append(append(text, `,"answer":`...), e.Answer...)
	return append(text, "}}"...), nil
}

func (r *Recorder) open() error {
	f, err := os.OpenFile(r.path+draftSuffix, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("recording: %w", err)
	}
	r.file = f
	if r.sealed, err = age.Encrypt(f, r.store.identity.Recipient()); err != nil {
		return fmt.Errorf("recording: %w", err)
	}
	if r.packed, err = r.store.packInto(r.sealed); err != nil {
		return fmt.Errorf("recording: %w", err)
	}
	head, err := canon.Verbatim(line{Head: &r.head})
	if err != nil {
		return fmt.Errorf("recording: %w", err)
	}
	return r.put(head)
}

// packInto returns a writer that compresses into w. One that another recording has ended is
// used again: a new one has to clear a megabyte, which takes longer than to pack a small run.
func (s *Store) packInto(w io.Writer) (*gzip.Writer, error) {
	if packed, ok := s.packers.Get().(*gzip.Writer); ok {
		packed.Reset(w)
		return packed, nil
	}
	return gzip.NewWriterLevel(w, gzip.BestSpeed)
}

func (r *Recorder) put(text []byte) error {
	var err error
	if r.size += int64(len(text)) + 1; r.size > maxRecording {
		err = fmt.Errorf("it would hold more than %d bytes", maxRecording)
	}
	if err == nil {
		_, err = r.packed.Write(append(text, '\n'))
	}
	if err != nil {
		return fmt.Errorf("recording: %w", err)
	}
	return nil
}

// Close ends the recording with the run's output. Only a finished recording can be replayed;
// one that cannot be finished is removed.
func (r *Recorder) Close(output Output) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	err := r.write(canon.Verbatim(line{End: &ending{output, r.count}})) // the envelope keeps its bytes
	if r.file == nil {
		return err
	}
	if err == nil {
		err = errors.Join(r.packed.Close(), r.sealed.Close(), r.file.Sync())
		r.store.packers.Put(r.packed)
		r.packed, r.failed = nil, errors.New("recording: it has ended")
	}
	bytes, statErr := r.bytes()
	err = errors.Join(err, statErr, r.file.Close())
	if err == nil && bytes > r.store.kept.Size {
		err = fmt.Errorf("recording: it has %d bytes, more than all may have", bytes)
	}
	if err == nil {
		err = os.Rename(r.file.Name(), r.path)
	}
	if err != nil {
		return errors.Join(err, removeIfThere(r.file.Name()))
	}
	if err := r.store.keepTools(r.head.Snapshot, r.tools); err != nil {
		return fmt.Errorf("recording: %w", err)
	}
	return r.store.wrote(bytes)
}

func (r *Recorder) bytes() (int64, error) {
	info, err := r.file.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// unpack unpacks what was decrypted. Recordings of older versions are not packed.
func unpack(plain io.Reader) (io.Reader, error) {
	in := bufio.NewReaderSize(plain, 64<<10)
	if magic, err := in.Peek(2); err != nil || magic[0] != 0x1f || magic[1] != 0x8b {
		return in, nil
	}
	return gzip.NewReader(in)
}

func removeIfThere(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Load reads the recording of a run.
func (s *Store) Load(run string) (*Recording, error) {
	recording, err := s.load(run)
	if err != nil {
		return nil, fmt.Errorf("loading %q: %w", run, err)
	}
	return recording, nil
}

func (s *Store) load(run string) (*Recording, error) {
	f, plain, err := s.open(run)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines, err := unpack(plain)
	if err != nil {
		return nil, err
	}
	recording, err := read(lines)
	if err != nil {
		return nil, err
	}
	if recording.RunID != run {
		return nil, fmt.Errorf("it is the recording of %q", recording.RunID)
	}
	recording.Tools, err = s.loadTools(recording.Snapshot)
	return recording, err
}

// open opens the recording of a run and returns it with its decrypted content. The error is ErrNotFound if there is
// none. The caller must close the file.
func (s *Store) open(run string) (f *os.File, plain io.Reader, err error) {
	path, err := s.path(run)
	if err != nil {
		return nil, nil, err
	}
	f, err = store.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, ErrNotFound
	}
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	switch {
	case err != nil:
	case s.kept.Expired(info.ModTime()):
		err = ErrNotFound
	default:
		plain, err = age.Decrypt(f, s.identity)
	}
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, plain, nil
}

// read reads a recording's lines. One without its end is an error.
func read(plain io.Reader) (*Recording, error) {
	in := strictjson.NewDecoder(io.LimitReader(plain, maxRecording))
	recording := &Recording{}
	for n := 0; ; n++ {
		var l line
		if err := in.Decode(&l); err != nil {
			return nil, errors.New("the recording is incomplete or damaged")
		}
		switch {
		case n == 0 && l.Head != nil:
			recording.Head = *l.Head
		case n > 0 && l.Exchange != nil:
			recording.Exchanges = append(recording.Exchanges, *l.Exchange)
		case n > 0 && l.End != nil && l.End.Exchanges == len(recording.Exchanges):
			recording.Output = l.End.Output
			slices.SortFunc(recording.Exchanges, func(a, b Exchange) int { return a.Number - b.Number })
			return recording, nil
		default:
			return nil, errors.New("the recording is incomplete or damaged")
		}
	}
}
