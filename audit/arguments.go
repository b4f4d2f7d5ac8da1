package audit

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"filippo.io/age"
	"golang.org/x/sys/unix"

	"github.com/airlock-mcp/airlock/internal/agekey"
	"github.com/airlock-mcp/airlock/internal/canon"
	"github.com/airlock-mcp/airlock/internal/retention"
	files "github.com/airlock-mcp/airlock/internal/store"
	"github.com/airlock-mcp/airlock/internal/strictjson"
)

const (
	argumentsKeyFile = "audit-arguments.key" // an age identity, needed to read
	argumentsPubFile = "audit-arguments.pub" // its recipient: enough to write
	argumentsTop     = "airlock audit arguments\n"
	argumentsSuffix  = ".sealed"
	// maxKeptArguments is the most bytes of one call's arguments that are kept.
	maxKeptArguments = 1 << 20
	// maxArgumentsFile is the maximum size of a file of arguments.
	maxArgumentsFile = 8 << 20
)

// ArgumentsOptions limit how long arguments are kept, encrypted, beside the log.
type ArgumentsOptions struct {
	Keep time.Duration // from when they were written
	Size int64         // limit for all files together, in bytes; the oldest are removed first
}

// keptArguments are those of one call.
type keptArguments struct {
	RunID  string          `json:"run_id"`
	CallID string          `json:"call_id"`
	Values json.RawMessage `json:"arguments"`
}

// argumentStore keeps the bytes of the arguments of calls, readable with the private
// key. They are not part of the log and may be removed; the log's arguments_hash proves
// them. Each process writes separate files. A file begins with a key that is encrypted
// to the recipient (age), and the entries are encrypted with that key (AES-256-GCM,
// numbered nonces).
type argumentStore struct {
	dir       string
	writer    string
	opts      ArgumentsOptions
	recipient age.Recipient
	now       func() time.Time

	mu     sync.Mutex // guards all below
	file   *os.File   // nil before the first call, and after a failure
	seal   cipher.AEAD
	count  uint64
	bytes  int64
	opened time.Time
}

func argumentsDirectory(dir string) string { return filepath.Join(dir, "arguments") }

func openArguments(at places, writer string, o ArgumentsOptions, now func() time.Time) (*argumentStore, error) {
	recipient, err := loadRecipient(at.keys)
	if err != nil {
		return nil, fmt.Errorf("the key of the kept arguments: %w", err)
	}
	s := &argumentStore{dir: argumentsDirectory(at.dir), writer: writer, opts: o, recipient: recipient, now: now}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return nil, err
	}
	return s, s.prune()
}

// loadRecipient reads the public key, or creates the key pair on first use. The private key
// may have been moved elsewhere since.
func loadRecipient(keys string) (age.Recipient, error) {
	path := filepath.Join(keys, argumentsPubFile)
	text, err := files.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		identity, err := agekey.LoadOrCreate(filepath.Join(keys, argumentsKeyFile))
		if err != nil {
			return nil, err
		}
		text = []byte(identity.Recipient().String() + "\n")
		if err := files.WriteFile(path, text, 0o644); err != nil {
			return nil, err
		}
	} else if err != nil {
		return nil, err
	}
	recipient, err := age.ParseX25519Recipient(strings.TrimSpace(string(text)))
	if err != nil {
		return nil, fmt.Errorf("%q holds no age recipient", path)
	}
	return recipient, nil
}

// put keeps the arguments of a call. Arguments over maxKeptArguments are not kept.
func (s *argumentStore) put(k keptArguments) error {
	if len(k.Values) > maxKeptArguments {
		return nil
	}
	text, err := canon.Verbatim(k)
	if err != nil {
		return fmt.Errorf("keeping arguments: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file == nil || s.bytes >= s.fileSize() || s.now().Sub(s.opened) > s.opts.Keep/4 {
		if err := s.beginLocked(); err != nil {
			return fmt.Errorf("keeping arguments: %w", err)
		}
	}
	err = s.writeLocked(text)
	if errors.Is(err, errRewritten) {
		if err = s.beginLocked(); err == nil {
			err = s.writeLocked(text)
		}
	}
	if err != nil {
		return fmt.Errorf("keeping arguments: %w", err)
	}
	return nil
}

// errRewritten is returned if an erasure has replaced the file that a process writes.
var errRewritten = errors.New("the file was replaced")

// writeLocked appends an entry to the file. The file's lock keeps erasures out meanwhile.
func (s *argumentStore) writeLocked(text []byte) error {
	file := s.file
	err := files.WithLock(file, files.Exclusive, func() error {
		var stat unix.Stat_t
		if err := unix.Fstat(int(file.Fd()), &stat); err != nil || stat.Nlink == 0 {
			return errors.Join(err, errRewritten)
		}
		n, err := file.Write(sealEntry(s.seal, s.count, text))
		s.count++
		s.bytes += int64(n)
		return err
	})
	if err != nil {
		err = errors.Join(err, file.Close())
		s.file = nil // it may end in half an entry: the next goes to another file
	}
	return err
}

// sealEntry returns an encrypted entry with its length.
func sealEntry(seal cipher.AEAD, count uint64, text []byte) []byte {
	sealed := seal.Seal(make([]byte, 4, 4+len(text)+seal.Overhead()), nonce(count), text, nil)
	binary.BigEndian.PutUint32(sealed, uint32(len(sealed)-4))
	return sealed
}

// fileSize returns the size at which a new file is begun. Several files fit into the
// store's size, so that the oldest can be removed.
func (s *argumentStore) fileSize() int64 { return min(maxArgumentsFile, max(s.opts.Size/8, 1)) }

func nonce(count uint64) []byte { return binary.BigEndian.AppendUint64(make([]byte, 4, 12), count) }

func (s *argumentStore) beginLocked() error {
	if err := errors.Join(s.closeLocked(), s.prune()); err != nil {
		return err
	}
	seal, header, err := newArgumentsFile(s.recipient)
	if err != nil {
		return err
	}
	s.seal = seal
	now := s.now()
	path := filepath.Join(s.dir, fmt.Sprintf("%016d-%s%s", now.UnixMicro(), s.writer, argumentsSuffix))
	if s.file, err = openPlain(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY); err != nil {
		s.file = nil
		return err
	}
	s.count, s.opened = 0, now
	n, err := s.file.Write(header)
	s.bytes = int64(n)
	return err
}

// newArgumentsFile returns a new key for the entries of a file, and the beginning of the file, which
// has the key encrypted to the recipient.
func newArgumentsFile(to age.Recipient) (cipher.AEAD, []byte, error) {
	key := make([]byte, 32)
	rand.Read(key) // never fails: crypto/rand aborts the program instead
	wrapped, err := agekey.Seal(to, key)
	if err != nil {
		return nil, nil, err
	}
	seal, err := newSeal(key)
	text := binary.BigEndian.AppendUint32([]byte(argumentsTop), uint32(len(wrapped)))
	return seal, append(text, wrapped...), err
}

func newSeal(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

// prune removes what is too old, and the oldest of what is too much.
func (s *argumentStore) prune() error {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return err
	}
	var kept []retention.Item
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil && strings.HasSuffix(entry.Name(), argumentsSuffix) {
			kept = append(kept, retention.Item{Path: filepath.Join(s.dir, entry.Name()), Changed: info.ModTime(),
				Bytes: info.Size()})
		}
	}
	// One more file fits.
	return retention.New(retention.Limits{Keep: s.opts.Keep, Size: max(s.opts.Size-s.fileSize(), 1), Now: s.now}).Prune(
		kept)
}

func (s *argumentStore) closeLocked() error {
	if s.file == nil {
		return nil
	}
	err := s.file.Close()
	s.file = nil
	return err
}

func (s *argumentStore) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closeLocked()
}

// ErrNoArgumentsKey means that the private key for kept arguments is missing.
var ErrNoArgumentsKey = errors.New("the key that decrypts the arguments is missing")

// keptReader reads kept arguments and compares them with the hashes of the log.
type keptReader struct {
	identity age.Identity
	hasher   hasher
	paths    []string // of the files with arguments, the oldest first
}

func openKept(dir, keys string) (*keptReader, error) {
	at, err := findPlaces(dir, keys)
	if err != nil {
		return nil, err
	}
	identity, err := agekey.Load(filepath.Join(at.keys, argumentsKeyFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNoArgumentsKey
	}
	if err != nil {
		return nil, fmt.Errorf("the key of the kept arguments: %w", err)
	}
	h, err := loadHasher(at.keys)
	if err != nil {
		return nil, err
	}
	paths, err := filepath.Glob(filepath.Join(argumentsDirectory(dir), "*"+argumentsSuffix))
	return &keptReader{identity, h, paths}, err
}

// each calls visit for all kept arguments, and returns how many files are damaged.
func (r *keptReader) each(visit func(keptArguments)) (damaged int) {
	for _, path := range r.paths {
		if err := eachKept(path, r.identity, visit); err != nil {
			damaged++
		}
	}
	return damaged
}

// proven returns the arguments if they have the hash of the log.
func (r *keptReader) proven(k keptArguments, hash string) (values json.RawMessage, ok bool) {
	switch unescaped := withoutHTMLEscapes(k.Values); hash {
	case r.hasher.sum(k.Values):
		return k.Values, true
	case r.hasher.sum(unescaped):
		return unescaped, true
	}
	return nil, false
}

// ShowArguments adds the kept arguments to the calls of a run. Arguments that do not
// match the log's hash are left out and counted.
func ShowArguments(dir, keys string, t *RunTree) (misfits int, err error) {
	reader, err := openKept(dir, keys)
	if err != nil {
		return 0, err
	}
	calls := map[string]*CallTree{}
	for i := range t.Calls {
		calls[t.Calls[i].ID] = &t.Calls[i]
	}
	damaged := reader.each(func(k keptArguments) {
		c := calls[k.CallID]
		if c == nil || k.RunID != t.ID {
			return
		}
		values, ok := reader.proven(k, c.Last().ArgumentsHash)
		if !ok {
			misfits++
			return
		}
		c.Arguments = values
	})
	return misfits + damaged, nil
}

// withoutHTMLEscapes undoes the escapes that json.Marshal adds to a json.RawMessage.
// Earlier versions kept arguments in that form.
func withoutHTMLEscapes(values json.RawMessage) json.RawMessage {
	for _, c := range "<>&\u2028\u2029" {
		values = bytes.ReplaceAll(values, fmt.Appendf(nil, `\u%04x`, c), []byte(string(c)))
	}
	return values
}

// eachKept calls visit for the arguments in a file, up to one that is damaged or
// was not finished.
func eachKept(path string, identity age.Identity, visit func(keptArguments)) error {
	f, err := openPlain(path, os.O_RDONLY)
	if err != nil {
		return err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxArgumentsFile+2*maxKeptArguments))
	if err != nil {
		return err
	}
	text, ok := bytes.CutPrefix(text, []byte(argumentsTop))
	header, text, whole := cutFrame(text)
	if !ok || !whole {
		return fmt.Errorf("%q is damaged", path)
	}
	key, err := agekey.Open(header, identity)
	if err != nil {
		return fmt.Errorf("%q: %w", path, err)
	}
	seal, err := newSeal(key)
	if err != nil {
		return fmt.Errorf("%q: %w", path, err)
	}
	for count := uint64(0); len(text) > 0; count++ {
		var entry []byte
		if entry, text, whole = cutFrame(text); !whole {
			return nil // its process was killed
		}
		var k keptArguments
		opened, err := seal.Open(nil, nonce(count), entry, nil)
		if err == nil {
			err = strictjson.UnmarshalOpen(opened, &k)
		}
		if err != nil {
			return fmt.Errorf("%q is damaged", path)
		}
		visit(k)
	}
	return nil
}

// cutFrame cuts what its length in four bytes announces.
func cutFrame(text []byte) (frame, rest []byte, whole bool) {
	if len(text) < 4 {
		return nil, nil, false
	}
	n := int64(binary.BigEndian.Uint32(text))
	if n > int64(len(text)-4) {
		return nil, nil, false
	}
	return text[4 : 4+n], text[4+n:], true
}
