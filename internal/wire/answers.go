package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"sync"
)

// Appender is a result that writes itself as JSON, on one line. What encoding/json would
// make of it costs another look at every byte.
type Appender interface {
	AppendJSON(text []byte) ([]byte, error)
}

// answer is one response on its way to the far side.
type answer struct {
	id     json.RawMessage
	result any
	left   func(error) // called once: when it has left, or will not

	refused bool // there is no such request to reclaim, and no result
}

// answers writes the responses of one connection, those that wait at one moment at once:
// each write wakes the far side, which costs both more than the bytes.
type answers struct {
	out   io.Writer
	alone func() bool // reports that no other goroutine can be about to send

	mu      sync.Mutex // guards both below
	waiting []answer
	writing bool // a sender writes what waits
}

// enoughAtOnce is how many bytes are written at least before more are encoded, where more waits.
const enoughAtOnce = 64 << 10

// send writes an answer, or queues it for a goroutine that is already writing. An answer is
// encoded when it is written, so that queued answers do not take memory twice.
func (w *answers) send(a answer) {
	w.mu.Lock()
	w.waiting = append(w.waiting, a)
	mine := !w.writing
	w.writing = true
	w.mu.Unlock()
	if !mine {
		return
	}
	if !w.alone() { // yielding wakes a thread, which is useless without other goroutines
		runtime.Gosched() // others that have an answer share the write
	}
	var text []byte
	for waiting := w.take(); len(waiting) > 0; waiting = w.take() {
		text = w.write(text[:0], waiting)
	}
}

// take returns what waits. When there is nothing, the next answer is for its sender to write.
func (w *answers) take() []answer {
	w.mu.Lock()
	defer w.mu.Unlock()
	waiting := w.waiting
	w.waiting = nil
	w.writing = len(waiting) > 0
	return waiting
}

// write encodes and writes answers, and returns text for reuse. It ignores a closed
// connection: the requests have ended with it, and the reader returns the error.
func (w *answers) write(text []byte, waiting []answer) []byte {
	written := 0
	for i, a := range waiting {
		begin := len(text)
		encoded, err := appendResponse(text, a)
		if err == nil && len(encoded)-begin > MaxFrame {
			err = fmt.Errorf("an answer of %d bytes does not fit a frame", len(encoded)-begin)
		}
		if err != nil {
			a.left(err)
			waiting[i].left = nil
		} else {
			text = encoded
		}
		if len(text) < enoughAtOnce && i < len(waiting)-1 {
			continue
		}
		if len(text) > 0 {
			_, _ = w.out.Write(text)
		}
		for _, a := range waiting[written : i+1] {
			if a.left != nil {
				a.left(nil)
			}
		}
		if written = i + 1; cap(text) > enoughAtOnce {
			text = nil
		}
		text = text[:0]
		clear(waiting[:written])
	}
	return text
}

// appendResponse appends a response (JSON-RPC 2.0 Specification, section 5) and a newline.
func appendResponse(text []byte, a answer) ([]byte, error) {
	text = append(append(text, `{"jsonrpc":"2.0","id":`...), a.id...)
	if a.refused {
		return append(text, `,"error":{"code":-32600,"message":"there is no such request to reclaim"}}`+"\n"...), nil
	}
	text = append(text, `,"result":`...)
	var err error
	if itself, ok := a.result.(Appender); ok {
		text, err = itself.AppendJSON(text)
	} else {
		text, err = AppendValue(text, a.result)
	}
	if err != nil {
		return nil, fmt.Errorf("encoding an answer: %w", err)
	}
	return append(text, "}\n"...), nil
}

// AppendValue appends the JSON of a value, on one line, as encoding/json makes it.
func AppendValue(text []byte, v any) ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false) // it would make some texts six times as long
	if err := encoder.Encode(v); err != nil {
		return nil, err
	}
	return append(text, bytes.TrimSuffix(out.Bytes(), []byte("\n"))...), nil
}
