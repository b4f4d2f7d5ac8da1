package upstream

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/airlock-mcp/airlock/internal/canon"
	"github.com/airlock-mcp/airlock/internal/truncate"
)

// maxMessage is the largest message that a server may send, in bytes, unless a call allows a larger one (AllowLarge).
// It leaves a result room in the 16 MiB frames towards a sandbox.
const maxMessage = 16<<20 - 64<<10

// lineReader reads what a server writes to stdout: JSON-RPC messages, a line
// each, and whatever else programs print there.
type lineReader struct {
	reader *bufio.Reader
	limit  int // bytes of a line
	// large is called once for a line beyond the limit. It returns a larger limit for it, or the same one.
	large func() int
}

func newLineReader(r io.Reader, limit int) *lineReader {
	return &lineReader{reader: bufio.NewReaderSize(r, 64<<10), limit: limit}
}

// line is what one line turned out to be: messages, or rubbish.
type line struct {
	messages []jsonrpc.Message // more than one for a batch (MCP 2025-03-26)
	rubbish  string            // the start of a line that is not JSON-RPC, for the log
	// tooLarge is the ID of a response that exceeded the limit and was discarded;
	// its caller must get an error.
	tooLarge *jsonrpc.ID
	// tooDeep are the IDs of responses that exceed the nesting limit; their callers
	// must get an error.
	tooDeep []jsonrpc.ID
}

// next returns the next line that is not empty. Only the end of the stream is
// an error.
func (r *lineReader) next() (line, error) {
	for {
		text, id, err := r.read()
		text = bytes.TrimSpace(text)
		switch {
		case id != nil:
			return line{tooLarge: id}, nil
		case len(text) > 0:
			return parseLine(text), nil
		case err != nil:
			return line{}, err
		}
	}
}

// read returns one line in newly allocated memory. Of a line beyond the limit it returns only
// the ID; without one the line is ignored.
func (r *lineReader) read() (text []byte, tooLarge *jsonrpc.ID, err error) {
	limit := r.limit
	for {
		part, err := r.reader.ReadSlice('\n')
		if limit == r.limit && len(text)+len(part) > limit && r.large != nil {
			limit = r.large()
		}
		if len(text)+len(part) > limit {
			return r.skip(text, part, err)
		}
		text = extend(text, part)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return text, nil, err
		}
	}
}

// skip reads the rest of a line that is too long and looks for its ID.
func (r *lineReader) skip(text, part []byte, err error) ([]byte, *jsonrpc.ID, error) {
	var scan idScanner
	scan.write(text)
	scan.write(part)
	start := bytes.Clone(append(text, part...)[:min(len(text)+len(part), maxLogLine)])
	for errors.Is(err, bufio.ErrBufferFull) {
		part, err = r.reader.ReadSlice('\n')
		scan.write(part)
	}
	if id, ok := scan.id(); ok {
		return nil, &id, err
	}
	return start, nil, err
}

func parseLine(text []byte) line {
	if text[0] == '[' {
		return parseBatch(text)
	}
	message, err := decodeMessage(text)
	if err != nil {
		l := line{rubbish: trimLine(text)}
		if id, ok := deepResponse(text); ok {
			l.tooDeep = append(l.tooDeep, id)
		}
		return l
	}
	return line{messages: []jsonrpc.Message{message}}
}

// maxLevels is how deep the arrays and objects of a message may be inside each other:
// the SDK reads no deeper (its internal/json).
const maxLevels = 1000

// isDeep reports whether a message exceeds the nesting limit.
func isDeep(text []byte) bool { return canon.IsDeeper(text, maxLevels) }

// deepResponse returns the ID of a response that is nested too deep to be read.
func deepResponse(text []byte) (jsonrpc.ID, bool) {
	if !isDeep(text) {
		return jsonrpc.ID{}, false
	}
	var scan idScanner
	scan.write(text)
	return scan.id()
}

func parseBatch(text []byte) line {
	var l line
	for _, raw := range splitArray(text) {
		message, err := decodeMessage(raw)
		if id, ok := deepResponse(raw); ok && err != nil {
			l.tooDeep, l.rubbish = append(l.tooDeep, id), trimLine(text)
			continue
		}
		if err != nil {
			return line{rubbish: trimLine(text)}
		}
		l.messages = append(l.messages, message)
	}
	if len(l.messages)+len(l.tooDeep) == 0 {
		return line{rubbish: trimLine(text)}
	}
	return l
}

// trimLine makes a line of foreign output fit for a log.
func trimLine(text []byte) string {
	shown := truncate.Head(string(text[:min(len(text), maxLogLine+utf8.UTFMax)]), maxLogLine)
	return strings.ToValidUTF8(strings.TrimRight(shown, " \t\r\n"), "\uFFFD")
}
