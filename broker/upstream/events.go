package upstream

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// eventFilter passes on a stream of server-sent events (HTML Living Standard,
// section 9.2) and gives the tap every message in it. An event that is no
// JSON-RPC loses its data, one that is too large becomes an error answer.
type eventFilter struct {
	body    io.ReadCloser
	reader  *bufio.Reader
	call    jsonrpc.ID // that the stream answers; not valid for a separate stream
	tap     *tap
	skipped *skipped
	// old is for the stream of MCP 2024-11-05 (HTTP with SSE): the event that names
	// where to post messages stays, and events without data, which would end the
	// SDK's session, do not.
	old bool

	over  <-chan struct{} // closed when the request has ended; may be nil
	large *large          // of the event that is being read
	out   bytes.Buffer    // filtered events that were not read yet
	err   error           // of the body, once it is there
}

func newEventFilter(body io.ReadCloser, call jsonrpc.ID, t *tap, skipped *skipped) *eventFilter {
	return &eventFilter{body: body, reader: bufio.NewReaderSize(body, 64<<10), call: call, tap: t, skipped: skipped}
}

// Read implements io.Reader.
func (f *eventFilter) Read(p []byte) (int, error) {
	for f.out.Len() == 0 {
		if f.err != nil {
			return 0, f.err
		}
		f.next()
	}
	return f.out.Read(p)
}

// Close implements io.Closer.
func (f *eventFilter) Close() error { return f.body.Close() }

// event is one event as it came in.
type event struct {
	rest     []byte // the fields that are not data
	data     []byte
	hasData  bool
	name     string
	tooLarge bool
}

// next reads one event and writes the filtered one.
func (f *eventFilter) next() {
	var e event
	defer func() {
		f.large.end()
		f.large = nil
	}()
	for {
		line, err := f.readLine(&e)
		if err != nil {
			f.err = err
			f.tap.streams.end(f.call, f.over)
			if !errors.Is(err, io.EOF) {
				return // an incomplete event at the end is dropped
			}
			break
		}
		if len(line) == 0 {
			break
		}
		e.add(line)
	}
	before := f.out.Len()
	f.out.Write(e.rest)
	after := f.out.Len()
	if e.hasData || e.tooLarge {
		f.writeData(&e)
	}
	if f.old && f.out.Len() == after {
		f.out.Truncate(before)
		return
	}
	f.out.WriteByte('\n')
}

// readLine returns one line without its end. Lines beyond what the event may
// still hold are skipped.
func (f *eventFilter) readLine(e *event) ([]byte, error) {
	var line []byte
	for {
		part, err := f.reader.ReadSlice('\n')
		size := len(e.data) + len(e.rest) + len(line) + len(part)
		if size > maxMessage && f.large == nil && !e.tooLarge {
			f.large = f.tap.beginLarge(f.over)
		}
		if size > f.large.most() {
			e.tooLarge = true
		} else {
			line = extend(line, part)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		line = bytes.TrimRight(line, "\r\n")
		if err != nil && (len(line) == 0 || !errors.Is(err, io.EOF)) {
			return nil, err
		}
		if e.tooLarge && len(bytes.TrimRight(part, "\r\n")) > 0 {
			return []byte{':'}, nil // a comment, so that the event goes on
		}
		return line, nil
	}
}

// add takes one line. Only the fields of the standard stay; the SDK would
// break off at lines that the standard allows.
func (e *event) add(line []byte) {
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch field := string(name); field {
	case "data":
		if e.hasData {
			e.data = append(e.data, '\n')
		}
		e.data, e.hasData = append(e.data, value...), true
	case "event", "id", "retry":
		if field == "event" {
			e.name = string(value)
		}
		e.rest = fmt.Appendf(e.rest, "%s: %s\n", field, value)
	}
}

// writeData writes an event's data after the tap has seen it.
func (f *eventFilter) writeData(e *event) {
	var message jsonrpc.Message
	switch {
	case e.tooLarge && !f.call.IsValid():
		f.skipped.note("an event is larger than the limit")
		return
	case e.tooLarge:
		message = f.tap.tooLarge(f.call)
	case f.old && e.name == "endpoint":
		fmt.Fprintf(&f.out, "data: %s\n", bytes.ReplaceAll(e.data, []byte("\n"), nil))
		return
	case e.name != "" && e.name != "message", len(e.data) == 0:
		return
	default:
		received, err := decodeMessage(e.data)
		if err != nil {
			f.skipped.note(trimLine(e.data))
			id, deep := deepResponse(e.data)
			if !deep {
				return
			}
			message = f.tap.tooDeep(id)
			break
		}
		allowed := false
		if message, allowed = f.tap.incoming(received, f.call); !allowed {
			f.skipped.note(tooManyRequests)
			return
		}
		if message == nil {
			return
		}
	}
	data, err := jsonrpc.EncodeMessage(message)
	if err != nil {
		f.skipped.note("a message cannot be written again")
		return
	}
	f.out.WriteString("data: ")
	f.out.Write(data)
	f.out.WriteByte('\n')
}
