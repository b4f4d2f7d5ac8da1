package audit

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

const (
	headFile    = "head"        // the newest checkpoint, rewritten
	historyFile = "checkpoints" // the kept ones, appended
	// originPrefix begins the origin of each log; a random identifier follows.
	originPrefix = "airlock-audit/"
	// legacyTop begins a checkpoint of the format before C2SP's, which has no tree.
	legacyTop = "airlock audit log"
)

// checkpoint is a signed statement about the log: a C2SP tlog-checkpoint
// (origin, number of records, root of the Merkle tree over their lines) with two
// extension lines: which kept checkpoint is before it, and its time.
type checkpoint struct {
	origin string
	size   uint64
	root   tlog.Hash
	// kept is how many checkpoints had been kept before this one, and keptHash the
	// digest of the last of them, so that none can be left out, doubled or moved.
	kept     uint64
	keptHash tlog.Hash
	time     string
	// legacy is the hash of record size in a checkpoint of the earlier format,
	// which has no origin, root, kept and keptHash; otherwise it is empty.
	legacy string
	signed []byte // the whole note
}

func (c *checkpoint) text() string {
	if c.legacy != "" {
		return fmt.Sprintf("%s\n%020d\n%s\n%s\n", legacyTop, c.size, c.legacy, c.time)
	}
	return fmt.Sprintf("%s\n%d\n%s\nkept %d %s\ntime %s\n", c.origin, c.size, c.root, c.kept, c.keptHash, c.time)
}

// parseCheckpoint parses exactly the output of text.
func parseCheckpoint(text string) (checkpoint, error) {
	bad := errors.New("it is not a checkpoint")
	lines := strings.Split(text, "\n")
	var c checkpoint
	var errs []error
	try := func(err error) { errs = append(errs, err) }
	switch {
	case len(lines) == 5 && lines[0] == legacyTop:
		size, err := strconv.ParseUint(lines[1], 10, 53)
		try(err)
		c = checkpoint{size: size, legacy: lines[2], time: lines[3]}
	case len(lines) == 6 && strings.HasPrefix(lines[0], originPrefix):
		size, err := strconv.ParseUint(lines[1], 10, 53)
		try(err)
		root, err := tlog.ParseHash(lines[2])
		try(err)
		number, digest, _ := strings.Cut(strings.TrimPrefix(lines[3], "kept "), " ")
		kept, err := strconv.ParseUint(number, 10, 53)
		try(err)
		keptHash, err := tlog.ParseHash(digest)
		try(err)
		c = checkpoint{origin: lines[0], size: size, root: root, kept: kept, keptHash: keptHash,
			time: strings.TrimPrefix(lines[4], "time ")}
	default:
		return checkpoint{}, bad
	}
	if errors.Join(errs...) != nil || c.size == 0 || c.text() != text {
		return checkpoint{}, bad
	}
	return c, nil
}

// sign returns the checkpoint as a signed note.
func (c *checkpoint) sign(key *signingKey) error {
	signer, err := key.signer(c.origin)
	if err != nil {
		return err
	}
	c.signed, err = note.Sign(&note.Note{Text: c.text()}, signer)
	if err != nil {
		return fmt.Errorf("signing it: %w", err)
	}
	return nil
}

// digest is how the next kept checkpoint names this one.
func (c *checkpoint) digest() tlog.Hash { return sha256.Sum256(c.signed) }

// openCheckpoint reads a note with the signature of the key and no other.
func openCheckpoint(signed []byte, key verifyingKey) (checkpoint, error) {
	origin, _, _ := bytes.Cut(signed, []byte("\n"))
	verifier, err := key.verifier(string(origin))
	if err != nil {
		return checkpoint{}, err
	}
	n, err := note.Open(signed, note.VerifierList(verifier))
	if err != nil {
		return checkpoint{}, err
	}
	c, err := parseCheckpoint(n.Text)
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
	c.signed = bytes.Clone(signed)
	return c, nil
}

// readCheckpoint reads a note without checking its signature.
func readCheckpoint(signed []byte) (checkpoint, error) {
	end := bytes.Index(signed, []byte("\n\n"))
	if end < 0 {
		return checkpoint{}, errors.New("it is not a signed note")
	}
	c, err := parseCheckpoint(string(signed[:end+1]))
	c.signed = signed
	return c, err
}

// keptNotes splits the kept checkpoints: each note ends in a newline and is followed by an
// empty line. rest is an incomplete note at the end.
func keptNotes(data []byte) (notes [][]byte, rest []byte) {
	for {
		// A note is its text, an empty line, and its signatures.
		signatures := bytes.Index(data, []byte("\n\n"))
		if signatures < 0 {
			return notes, data
		}
		end := bytes.Index(data[signatures+2:], []byte("\n\n"))
		if end < 0 {
			return notes, data
		}
		end += signatures + 2
		notes, data = append(notes, data[:end+1]), data[end+2:]
	}
}
