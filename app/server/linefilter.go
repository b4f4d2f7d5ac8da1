package server

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/airlock-mcp/airlock/internal/strictjson"
)

// lineFilter filters the messages between a host and the SDK. A session of the SDK ends at the
// first line that is not JSON, and it does not answer a batch with a notification in it.
// lineFilter answers a line that is not a message with an error (JSON-RPC 2.0, section 5.1), and
// forwards a batch as one line for each message.
type lineFilter struct {
	in      *bufio.Reader
	batches bool // the host speaks a revision that has batches
	naming  bool // add the request ID to calls

	mu   sync.Mutex // guards the fields below: the SDK writes too
	out  io.Writer
	open map[string]*batch // by the ID of a request that is not yet answered
	// unanswered are the methods of all requests without an answer, by ID. The SDK does not
	// answer a second request with the same ID.
	unanswered map[jsonrpc.ID]string

	answered chan struct{} // receives a value after each answer; has capacity 1; can be nil
	prompt   chan struct{} // closed when every prompt request is answered; nil if nothing waits for that
}

// batch is the incomplete answer to a batch of messages.
type batch struct {
	answers []json.RawMessage
	due     int // requests that are not yet answered
}

func newLineFilter(in io.Reader, out io.Writer) *lineFilter {
	return &lineFilter{in: bufio.NewReaderSize(in, 64<<10), out: out, open: map[string]*batch{},
		unanswered: map[jsonrpc.ID]string{}}
}

// copyTo writes the lines that are messages to w until the input ends.
func (f *lineFilter) copyTo(w io.Writer) error {
	for {
		line, err := f.line()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if line, err = f.admit(bytes.TrimSpace(line)); err != nil {
			return err
		}
		if _, err := w.Write(line); err != nil {
			return err
		}
	}
}

// line returns the next line. If the line has more than MaxMessage bytes, line answers the host
// and returns nil, or returns an error response if the line is a response.
func (f *lineFilter) line() ([]byte, error) {
	line, refusal, forHost, err := ReadLine(f.in)
	switch {
	case forHost:
		return nil, f.send(refusal)
	case refusal != nil:
		return refusal, nil
	case err != nil && len(line) == 0:
		return nil, err
	}
	return line, nil
}

// ReadLine reads a line of at most MaxMessage bytes without its newline, which the last line may lack. If the
// line is longer, ReadLine returns an error response with the ID of the message as refusal.
// forHost is false if the message is itself a response; refusal then replaces it.
func ReadLine(in *bufio.Reader) (line, refusal []byte, forHost bool, err error) {
	var outline Outline
	size := 0
	for {
		part, err := in.ReadSlice('\n')
		if size += len(bytes.TrimSuffix(part, []byte("\n"))); size > MaxMessage {
			if line != nil {
				outline.Write(line)
				line = nil
			}
			outline.Write(part)
		} else {
			line = append(line, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case size > MaxMessage:
			refusal = outline.Refusal(fmt.Sprintf("the message has more than %d bytes", MaxMessage))
			return nil, refusal, !outline.IsResponse(), err
		}
		return line, nil, false, err
	}
}

// admit returns the messages of a line to forward, each on its own line. It returns nil if the
// line is blank or has been answered with an error.
func (f *lineFilter) admit(line []byte) ([]byte, error) {
	if answer, forHost := unreadable(line); forHost {
		return nil, f.send(answer)
	} else if answer != nil {
		return append(answer, '\n'), nil
	}
	switch {
	case len(line) == 0:
		return nil, nil
	case !json.Valid(line):
		return nil, f.send(rejection(jsonrpc.CodeParseError, "the line is not JSON"))
	case line[0] == '[' && f.batches:
		return f.admitBatch(line)
	case line[0] == '[':
		return nil, f.send(rejection(jsonrpc.CodeInvalidRequest,
			"send one message a line: this revision of MCP has no batches"))
	}
	message, err := jsonrpc.DecodeMessage(line)
	if err != nil {
		return nil, f.send(rejection(jsonrpc.CodeInvalidRequest, notAMessage))
	}
	if answer := refuseID(line); answer != nil {
		return nil, f.send(answer)
	}
	if answer := misshapen(message); answer != nil {
		return nil, f.send(answer)
	}
	if !f.begin(message) {
		return nil, f.send(rejection(jsonrpc.CodeInvalidRequest, idInUse))
	}
	f.notice(message)
	return append(f.handedOn(line), '\n'), nil
}

// begin records a request. It reports whether its ID is unused.
func (f *lineFilter) begin(message jsonrpc.Message) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.beginLocked(message)
}

func (f *lineFilter) beginLocked(message jsonrpc.Message) bool {
	req, ok := message.(*jsonrpc.Request)
	if !ok {
		return true
	}
	if id, ok := cancelledID(req); ok {
		delete(f.unanswered, id) // the SDK may not answer it
	}
	if !req.IsCall() {
		return true
	}
	if _, open := f.unanswered[req.ID]; open {
		return false
	}
	f.unanswered[req.ID] = req.Method
	return true
}

// handedOn returns a message in the form for the SDK.
func (f *lineFilter) handedOn(message []byte) []byte {
	if f.naming {
		return named(message)
	}
	return message
}

// isCalling reports whether an answer to a tool call is pending.
func (f *lineFilter) isCalling() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, method := range f.unanswered {
		if method == methodCall {
			return true
		}
	}
	return false
}

// admitBatch splits a batch (JSON-RPC 2.0, section 6) and records which answers belong together.
func (f *lineFilter) admitBatch(line []byte) ([]byte, error) {
	var messages []json.RawMessage
	if err := strictjson.UnmarshalOpen(line, &messages); err != nil || len(messages) == 0 {
		return nil, f.send(rejection(jsonrpc.CodeInvalidRequest, "the batch is empty"))
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	var out bytes.Buffer
	whole := &batch{}
	for _, raw := range messages {
		if answer, forHost := unreadable(raw); forHost {
			whole.answers = append(whole.answers, answer)
			continue
		} else if answer != nil {
			raw = answer
		}
		message, err := jsonrpc.DecodeMessage(raw)
		req, isRequest := message.(*jsonrpc.Request)
		call := isRequest && req.IsCall()
		switch {
		case err != nil:
			whole.answers = append(whole.answers, rejection(jsonrpc.CodeInvalidRequest, notAMessage))
			continue
		case call && refuseID(raw) != nil:
			whole.answers = append(whole.answers, refuseID(raw))
			continue
		case call && misshapen(message) != nil:
			whole.answers = append(whole.answers, misshapen(message))
			continue
		case !f.beginLocked(message):
			whole.answers = append(whole.answers, rejection(jsonrpc.CodeInvalidRequest, idInUse))
			continue
		case call:
			f.open[idOf(raw)] = whole
			whole.due++
		}
		out.Write(f.handedOn(raw))
		out.WriteByte('\n')
	}
	return out.Bytes(), f.finishLocked(whole)
}

// notice reads the revision of an initialize request. The host may send batches in 2025-03-26 and
// before.
func (f *lineFilter) notice(message jsonrpc.Message) {
	req, ok := message.(*jsonrpc.Request)
	if !ok || req.Method != methodInitialize {
		return
	}
	var params struct {
		ProtocolVersion string `json:"protocolVersion"`
	}
	if err := strictjson.UnmarshalOpen(req.Params, &params); err == nil {
		f.batches = params.ProtocolVersion == "2025-03-26" || params.ProtocolVersion == "2024-11-05"
	}
}

// Write writes one whole message of the SDK, or keeps it for the answer to its batch.
func (f *lineFilter) Write(p []byte) (int, error) {
	size := len(p)
	h := headOf(p)
	p = withCode(p, h)
	f.mu.Lock()
	defer f.mu.Unlock()
	if h.next != "method" {
		delete(f.unanswered, h.id)
		defer notify(f.answered) // when it is written
		defer f.noticePromptLocked()
	}
	if len(f.open) > 0 {
		if whole := f.open[idOf(p)]; whole != nil && !hasMethod(p) {
			delete(f.open, idOf(p))
			whole.due--
			whole.answers = append(whole.answers, bytes.Clone(bytes.TrimSpace(p)))
			return size, f.finishLocked(whole)
		}
	}
	if _, err := f.out.Write(p); err != nil {
		return 0, err
	}
	return size, nil
}

// finishLocked writes the answer to a batch if it is complete. A batch of notifications has no
// answer.
func (f *lineFilter) finishLocked(whole *batch) error {
	if whole.due > 0 || len(whole.answers) == 0 {
		return nil
	}
	line, err := Encode(whole.answers)
	if err != nil {
		return err
	}
	_, err = f.out.Write(append(line, '\n'))
	return err
}

// Close does nothing: the streams belong to the caller of Serve.
func (f *lineFilter) Close() error { return nil }

// send writes one line that does not come from the SDK.
func (f *lineFilter) send(line []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, err := f.out.Write(append(line, '\n'))
	return err
}

// rejection returns an error response without an ID.
func rejection(code int64, sentence string) []byte {
	text, _ := json.Marshal(sentence) // a string always encodes
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":null,"error":{"code":%d,"message":%s}}`, code, text)
}

// idOf returns the bytes of a message's ID; "" if it has none.
func idOf(message []byte) string {
	var fields struct {
		ID json.RawMessage `json:"id"`
	}
	_ = strictjson.UnmarshalOpen(message, &fields) // messages come here decoded once already
	return string(fields.ID)
}

// hasMethod reports whether a message is a request or a notification.
func hasMethod(message []byte) bool {
	var fields struct {
		Method *string `json:"method"`
	}
	return strictjson.UnmarshalOpen(message, &fields) == nil && fields.Method != nil
}
