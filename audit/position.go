package audit

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/airlock-mcp/airlock/internal/store"
)

// noFollow refuses a symbolic link in place of a file.
const noFollow = unix.O_NOFOLLOW

// mark is a record: its number and its hash. The zero value is before the first.
type mark struct {
	seq  uint64
	hash string
}

// position is the end of the log as written by this machine's Airlocks. It is stored beside
// the keys, which an attacker with write access to only the log's directory cannot reach: a
// log that was restored, truncated or extended does not match its position.
//
// It is written before the records that it announces and not always synced. So it survives
// the death of the process; after a crash of the machine it may be older than the log by up
// to maxUnsigned records.
type position struct {
	boot    string // the run of the kernel in which it was written
	origin  string // of the log's checkpoints
	first   uint64 // the oldest record that was there at the newest start
	durable mark   // the newest record that is signed, and so on stable storage
	base    mark   // the last record before the newest write
	pending []mark // the records of the newest write: the log ends in one of these, or at base
}

// positionName is the file's name in the directory of keys. It depends on where
// the log lies as seen from there, so that both can be moved together, and so
// that another log in the same place does not fit.
func positionName(dir, keys string) (string, error) {
	from, err := filepath.Abs(keys)
	if err != nil {
		return "", err
	}
	to, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	relative, err := filepath.Rel(from, to)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(relative))
	return "audit-position-" + hex.EncodeToString(sum[:8]), nil
}

const positionTop = "airlock audit position"

// encode has what matters most in its first few hundred bytes, which the kernel
// copies at once: one that is overwritten in part has the new base.
func (p *position) encode(text []byte) []byte {
	text = fmt.Appendf(text, "%s\nboot %36s\n%s\nfirst %020d\ndurable %020d %71s\nbase %020d %71s\npending %06d\n",
		positionTop, p.boot, p.origin, p.first, p.durable.seq, p.durable.hash, p.base.seq, p.base.hash, len(p.pending))
	for _, m := range p.pending {
		text = append(append(text, m.hash...), '\n')
	}
	return text
}

func parsePosition(text []byte) (*position, error) {
	bad := errors.New("it is damaged")
	lines := strings.Split(string(text), "\n")
	if len(lines) < 7 || lines[0] != positionTop {
		return nil, bad
	}
	p := &position{boot: strings.TrimSpace(strings.TrimPrefix(lines[1], "boot ")), origin: lines[2]}
	var errs [4]error
	var count uint64
	p.first, errs[3] = strconv.ParseUint(strings.TrimPrefix(lines[3], "first "), 10, 53)
	p.durable, errs[0] = parseMark(lines[4], "durable ")
	p.base, errs[1] = parseMark(lines[5], "base ")
	count, errs[2] = strconv.ParseUint(strings.TrimPrefix(lines[6], "pending "), 10, 16)
	if errors.Join(errs[:]...) != nil || count > maxBatch {
		return nil, bad
	}
	for i, hash := range lines[7:] {
		if uint64(i) == count {
			break
		}
		p.pending = append(p.pending, mark{p.base.seq + uint64(i) + 1, hash})
	}
	return p, nil
}

func parseMark(line, word string) (mark, error) {
	rest, ok := strings.CutPrefix(line, word)
	number, hash, cut := strings.Cut(rest, " ")
	seq, err := strconv.ParseUint(number, 10, 53)
	if err != nil || !ok || !cut {
		return mark{}, errors.New("it is damaged")
	}
	return mark{seq, strings.TrimSpace(hash)}, nil
}

// endsAt reports whether a log that ends with the record is as its writer left it.
func (p *position) endsAt(last mark) bool {
	if last == p.base {
		return true
	}
	return slices.Contains(p.pending, last)
}

// interrupted reports whether a log that ends with the record has an unfinished write, whose
// process was killed.
func (p *position) interrupted(last mark) bool {
	return len(p.pending) > 0 && p.pending[len(p.pending)-1] != last
}

// sameBoot reports whether the machine has not been rebooted since, so that no written data
// can have been lost.
func (p *position) sameBoot() bool { return p.boot != "" && p.boot == bootID() }

// readPosition reads the position of a log, or returns nil if it does not exist.
func readPosition(path string) (*position, error) {
	text, err := store.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	p, err := parsePosition(text)
	if err != nil {
		return nil, fmt.Errorf("%q: %w", path, err)
	}
	return p, nil
}

// bootID identifies this boot of the kernel; it is empty if unknown.
var bootID = sync.OnceValue(func() string {
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return string(bytes.TrimSpace(text))
})
