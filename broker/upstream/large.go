package upstream

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"slices"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// allowance is how large a call's result may be beyond maxMessage.
type allowance struct {
	most  int
	after func(func()) // calls a function when the caller's context has ended
}

type allowanceKey struct{}

// AllowLarge returns a context for calls whose results may have up to most bytes. A connection receives one result
// of more than 16 MiB at a time: the next one waits until ctx has ended, so the caller must end it as soon as it has
// dealt with the result.
func AllowLarge(ctx context.Context, most int64) context.Context {
	return context.WithValue(ctx, allowanceKey{},
		allowance{int(most), func(f func()) { context.AfterFunc(ctx, f) }})
}

func allowanceOf(ctx context.Context) allowance {
	a, _ := ctx.Value(allowanceKey{}).(allowance)
	a.most = max(a.most, maxMessage)
	return a
}

// large is the turn of one message of more than maxMessage bytes.
type large struct {
	limit   int    // bytes
	release func() // may be called twice
	taken   bool   // its exchange releases it
}

// beginLarge waits for the turn of a message of more than maxMessage bytes. It returns nil if no call expects one, or
// done is closed. The caller must call its end when the tap has the message.
func (t *tap) beginLarge(done <-chan struct{}) *large {
	t.mu.Lock()
	most := maxMessage
	for _, e := range t.waiting {
		most = max(most, e.allowed.most)
	}
	t.mu.Unlock()
	if most == maxMessage {
		return nil
	}
	select {
	case t.turn <- struct{}{}:
	case <-done:
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.reading = &large{limit: most, release: sync.OnceFunc(func() { <-t.turn })}
	return t.reading
}

// most returns the limit of the message in bytes.
func (l *large) most() int {
	if l == nil {
		return maxMessage
	}
	return l.limit
}

// end ends the turn, unless a call has the result.
func (l *large) end() {
	if l != nil && !l.taken {
		l.release()
	}
}

// readLarge reads the body of an answer, one byte beyond the limit if it is longer.
func (t *tap) readLarge(response *http.Response) ([]byte, *large, error) {
	body, err := io.ReadAll(io.LimitReader(response.Body, maxMessage+1))
	if err != nil || len(body) <= maxMessage {
		return body, nil, err
	}
	l := t.beginLarge(response.Request.Context().Done())
	all := bytes.NewBuffer(body)
	_, err = all.ReadFrom(io.LimitReader(response.Body, int64(l.most()-maxMessage)))
	return all.Bytes(), l, err
}

// extend appends to a message. append makes large slices a quarter larger each time, so the collector would find five
// times the size of a large message.
func extend(message, part []byte) []byte {
	if len(message) > maxMessage && cap(message)-len(message) < len(part) {
		message = slices.Grow(message, len(message))
	}
	return append(message, part...)
}

// admits reports whether a result is as large as its call allows. The turn of a large one ends with its caller.
func (t *tap) admits(e *exchange, response *jsonrpc.Response) bool {
	if len(response.Result) <= maxMessage {
		return true
	}
	if len(response.Result) > e.allowed.most {
		return false
	}
	t.mu.Lock()
	l := t.reading
	t.mu.Unlock()
	l.taken = true
	e.allowed.after(l.release)
	return true
}
