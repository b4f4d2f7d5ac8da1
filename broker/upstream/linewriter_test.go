package upstream

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
)

// startLines returns a writer to a pipe and the pipe's other end.
func startLines(t *testing.T) (*lineWriter, *os.File) {
	t.Helper()
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	closed := make(chan struct{})
	w := newLineWriter(writer, closed, sync.OnceFunc(func() { writer.Close() }))
	var running sync.WaitGroup
	running.Go(w.run)
	t.Cleanup(func() {
		close(closed)
		writer.Close()
		reader.Close()
		running.Wait()
	})
	return w, reader
}

// Every line arrives once and whole, whether the reader keeps up or not.
func TestLinesOfManyCallers(t *testing.T) {
	w, reader := startLines(t)
	const callers, each = 32, 50
	var all sync.WaitGroup
	var want []string
	for n := range callers {
		for i := range each {
			want = append(want, fmt.Sprintf("%d.%d %s", n, i, strings.Repeat("x", n*i)))
		}
		mine := want[n*each : (n+1)*each : (n+1)*each]
		all.Go(func() {
			for _, text := range mine {
				if sent, err := w.write(t.Context(), []byte(text+"\n")); !sent || err != nil {
					t.Errorf("got %v, %v, want it sent", sent, err)
				}
			}
		})
	}
	var got []string
	lines := bufio.NewReader(reader)
	for range want {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, strings.TrimSuffix(line, "\n"))
	}
	all.Wait()
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Error("the lines that were read are not those that were written")
	}
}

// A line that waits for a reader is withdrawn when its caller gives up, and was never sent. A
// line that is partly in the pipe counts as sent.
func TestLinesBehindAReaderThatDoesNotRead(t *testing.T) {
	w, reader := startLines(t)
	ctx, cancel := context.WithCancel(t.Context())
	type result struct {
		sent bool
		err  error
	}
	first := make(chan result, 1)
	large := []byte(strings.Repeat("x", 1<<20) + "\n")
	go func() {
		sent, err := w.write(ctx, large)
		first <- result{sent, err}
	}()
	begun := bufio.NewReader(reader)
	if _, err := begun.Peek(1); err != nil { // the first line is on its way
		t.Fatal(err)
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	if sent, err := w.write(gone, []byte("never\n")); sent || !errors.Is(err, context.Canceled) {
		t.Errorf("a line behind it: got %v, %v, want it not sent", sent, err)
	}
	cancel()
	if got := <-first; !got.sent || !errors.Is(got.err, context.Canceled) {
		t.Errorf("the line in the pipe: got %+v, want that it may have been sent", got)
	}
	last := make(chan result, 1)
	go func() {
		sent, err := w.write(t.Context(), []byte("last\n"))
		last <- result{sent, err}
	}()
	for _, want := range []string{string(large), "last\n"} {
		if got, err := begun.ReadString('\n'); err != nil || got != want {
			t.Fatalf("got %.20q (%v), want %.20q", got, err, want)
		}
	}
	if got := <-last; !got.sent || got.err != nil {
		t.Errorf("the last line: got %+v, want it sent", got)
	}
}

// A pipe without a reader has taken nothing.
func TestLinesWithoutAReader(t *testing.T) {
	w, reader := startLines(t)
	reader.Close()
	for range 2 { // the writer closes the pipe at the first
		if sent, err := w.write(t.Context(), []byte("x\n")); sent || err == nil {
			t.Errorf("got %v, %v, want an error and nothing sent", sent, err)
		}
	}
}
