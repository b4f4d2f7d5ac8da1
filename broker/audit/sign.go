package audit

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"

	files "github.com/airlock-mcp/airlock/internal/store"
)

const (
	signKeyFile   = "audit-sign.key"
	verifierFile  = "audit-sign.pub" // the public half, to be copied to whoever verifies
	signerName    = "airlock-audit"
	headFile      = "head"        // the newest checkpoint, rewritten after each batch
	historyFile   = "checkpoints" // those of starts, ends and full files, kept
	checkpointTop = "airlock audit log"
)

// checkpoint says that the record with that number has that hash. It is a signed
// note (golang.org/x/mod/sumdb/note, Ed25519) of four lines: a title, the
// number in twenty digits, the hash, and the record's time.
type checkpoint struct {
	seq  uint64
	hash string
	time string
}

func (c checkpoint) text() string {
	return fmt.Sprintf("%s\n%020d\n%s\n%s\n", checkpointTop, c.seq, c.hash, c.time)
}

func parseCheckpoint(text string) (checkpoint, error) {
	lines := strings.Split(text, "\n")
	if len(lines) != 5 || lines[0] != checkpointTop || lines[4] != "" {
		return checkpoint{}, errors.New("it is no checkpoint")
	}
	seq, err := strconv.ParseUint(lines[1], 10, 64)
	c := checkpoint{seq, lines[2], lines[3]}
	if err != nil || c.text() != text {
		return checkpoint{}, errors.New("it is no checkpoint")
	}
	return c, nil
}

// loadSigner reads the signing key in the directory, or makes it at first use, and
// puts its public half beside it. It returns that too.
func loadSigner(directory string) (_ note.Signer, public string, err error) {
	pair, err := files.Secret(filepath.Join(directory, signKeyFile), func() ([]byte, error) {
		secret, public, err := note.GenerateKey(rand.Reader, signerName)
		return []byte(secret + "\n" + public + "\n"), err
	})
	if err != nil {
		return nil, "", fmt.Errorf("the signing key of the audit log: %w", err)
	}
	secret, rest, _ := strings.Cut(string(pair), "\n")
	public, _, _ = strings.Cut(rest, "\n")
	signer, err := note.NewSigner(secret)
	if err != nil {
		return nil, "", fmt.Errorf("the signing key of the audit log: %q is damaged", filepath.Join(directory, signKeyFile))
	}
	path := filepath.Join(directory, verifierFile)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		if err := os.WriteFile(path, []byte(public+"\n"), 0o644); err != nil {
			return nil, "", fmt.Errorf("the signing key of the audit log: %w", err)
		}
	}
	return signer, public, nil
}

// sign writes the newest checkpoint over the last one, in one small write of
// constant length. It is not synced: one that is lost leaves records that are
// chained, but not signed until the next append. The records must be durable.
func (s *store) sign() error {
	signed, err := note.Sign(&note.Note{Text: checkpoint{s.next - 1, s.prev, s.time}.text()}, s.signer)
	if err != nil {
		return fmt.Errorf("signing it: %w", err)
	}
	if _, err := s.head.WriteAt(signed, 0); err != nil {
		return fmt.Errorf("signing it: %w", err)
	}
	return nil
}

// keepEvery is how many records there are at least between two kept checkpoints.
const keepEvery = 1000

// keepCheckpoint adds the newest checkpoint to the history, unless the last one
// is recent.
func (s *store) keepCheckpoint() error {
	if err := s.sign(); err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(s.dir, historyFile), os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("keeping a checkpoint: %w", err)
	}
	defer f.Close()
	signed, err := os.ReadFile(s.head.Name())
	if err != nil {
		return fmt.Errorf("keeping a checkpoint: %w", err)
	}
	if last, err := lastKept(f, int64(len(signed))+1); err != nil {
		return fmt.Errorf("keeping a checkpoint: %w", err)
	} else if last > 0 && s.next-1 < last+keepEvery {
		return nil
	}
	if err := appendWhole(f, append(signed, '\n')); err != nil {
		return fmt.Errorf("keeping a checkpoint: %w", err)
	}
	if err := f.Sync(); err != nil {
		return fmt.Errorf("keeping a checkpoint: %w", err)
	}
	return nil
}

// appendWhole appends all of text or, where the disk is full, nothing of it.
func appendWhole(f *os.File, text []byte) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if _, err := f.Write(text); err != nil {
		return errors.Join(err, f.Truncate(info.Size()))
	}
	return nil
}

// lastKept returns the number in the last checkpoint of the history, all of
// which have one size; 0 when there is none that can be read.
func lastKept(f *os.File, size int64) (uint64, error) {
	info, err := f.Stat()
	if err != nil || info.Size() < size {
		return 0, err
	}
	text := make([]byte, size)
	if _, err := f.ReadAt(text, info.Size()-size); err != nil {
		return 0, err
	}
	lines := strings.SplitAfter(string(text), "\n")
	c, err := parseCheckpoint(strings.Join(lines[:min(4, len(lines))], ""))
	if err != nil {
		return 0, nil // damaged: Verify will say so, and a new one is due
	}
	return c.seq, nil
}

// signatures are the checkpoints of a log that Verify holds it to.
type signatures struct {
	head    checkpoint
	history []checkpoint
}

// readSignatures checks every checkpoint's signature. The findings name those
// that are missing or damaged.
func readSignatures(dir, key string) (s signatures, findings []Finding) {
	verifier, err := note.NewVerifier(strings.TrimSpace(key))
	if err != nil {
		return s, []Finding{{File: verifierFile, Text: "the public key is missing or damaged, so no signature can be checked"}}
	}
	known := note.VerifierList(verifier)
	if data, err := os.ReadFile(filepath.Join(dir, headFile)); err != nil {
		findings = append(findings, Finding{File: headFile, Text: "the signed head is missing"})
	} else if s.head, err = openCheckpoint(data, known); err != nil {
		findings = append(findings, Finding{File: headFile, Text: "the signed head is damaged or forged"})
	}
	data, err := os.ReadFile(filepath.Join(dir, historyFile))
	if err != nil {
		return s, append(findings, Finding{File: historyFile, Text: "the kept checkpoints are missing"})
	}
	for i, signed := range splitNotes(data) {
		c, err := openCheckpoint(signed, known)
		if err != nil {
			findings = append(findings, Finding{File: historyFile, Line: i*checkpointLines + 1, Text: "a kept checkpoint is damaged or forged"})
			continue
		}
		s.history = append(s.history, c)
	}
	return s, findings
}

func openCheckpoint(signed []byte, known note.Verifiers) (checkpoint, error) {
	n, err := note.Open(signed, known)
	if err != nil {
		return checkpoint{}, err
	}
	again, err := parseCheckpoint(n.Text)
	if err != nil {
		return checkpoint{}, err
	}
	if len(n.Sigs) != 1 || len(n.UnverifiedSigs) != 0 {
		return checkpoint{}, errors.New("it has other signatures")
	}
	// The note package ignores the bits of the last character that carry nothing.
	if _, err := base64.StdEncoding.Strict().DecodeString(n.Sigs[0].Base64); err != nil {
		return checkpoint{}, errors.New("its signature is written in an unusual way")
	}
	return again, nil
}

// checkpointLines is how many lines a kept checkpoint takes: four of text, an
// empty one, the signature, and an empty one after it.
const checkpointLines = 7

func splitNotes(data []byte) [][]byte {
	var notes [][]byte
	lines := bytes.SplitAfter(data, []byte("\n"))
	for len(lines) > 0 && !(len(lines) == 1 && len(lines[0]) == 0) {
		n := min(checkpointLines, len(lines))
		signed := bytes.Join(lines[:n], nil)
		notes = append(notes, bytes.TrimSuffix(signed, []byte("\n")))
		lines = lines[n:]
	}
	return notes
}
