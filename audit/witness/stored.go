package witness

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"os"
	"regexp"
	"strings"

	"github.com/airlock-mcp/airlock/internal/lazyregexp"
	"github.com/airlock-mcp/airlock/internal/store"
)

var encodedNote = lazyregexp.New(regexp.QuoteMeta(syslogNote) + `([A-Za-z0-9+/]{40,}={0,2})`)

// maxStored is the most bytes of a witness's file that are read.
const maxStored = 1 << 30

// maxNoteLines is the most lines of one note.
const maxNoteLines = 20

// Stored returns the notes with the prefix in a witness's file: in the format of the file
// witness, or lines of a syslog server. Other content is ignored.
func Stored(path, prefix string) ([][]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("reading the audit witness: %w", err)
	}
	if info.Size() > maxStored {
		return nil, fmt.Errorf("reading the audit witness: it has more than %d bytes", maxStored)
	}
	text, err := store.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the audit witness: %w", err)
	}
	return stored(text, prefix), nil
}

func stored(text []byte, prefix string) (notes [][]byte) {
	lines := bytes.SplitAfter(text, []byte("\n"))
	for i, line := range lines {
		if found := encodedNote.FindSubmatch(line); found != nil {
			if data, err := base64.StdEncoding.DecodeString(string(found[1])); err == nil &&
				strings.HasPrefix(string(data), prefix) {
				notes = append(notes, data)
			}
		}
		if bytes.HasPrefix(line, []byte(prefix)) {
			notes = append(notes, noteAt(lines[i:min(len(lines), i+maxNoteLines)]))
		}
	}
	return notes
}

// noteAt joins the lines of the note that begins at the first: a text, an empty
// line and the signatures.
func noteAt(lines [][]byte) []byte {
	var text []byte
	empty := false
	for _, line := range lines {
		if len(line) == 1 && empty || empty && !bytes.HasPrefix(line, []byte("—")) {
			break
		}
		empty = empty || len(line) == 1
		text = append(text, line...)
	}
	return text
}
