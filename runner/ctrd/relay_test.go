package ctrd

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"
)

// TestPass splits a stream with marks in it in any way and wants all of it but the marks.
func TestPass(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		from, shim, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		r, err := newRelay(from)
		if err != nil {
			t.Fatal(err)
		}
		var sent []byte
		for range rapid.IntRange(0, 5).Draw(t, "pieces") {
			piece := rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "piece")
			if rapid.Bool().Draw(t, "like a mark") {
				piece = append(piece, r.mark[:rapid.IntRange(0, len(r.mark)-1).Draw(t, "part")]...)
			}
			sent = append(sent, piece...)
			if rapid.Bool().Draw(t, "mark") {
				sent = append(sent, r.mark...)
			}
		}
		// A part of a mark that a mark follows could be read as another mark's part.
		want := bytes.ReplaceAll(sent, r.mark, nil)
		r.begin()
		go func() {
			size := rapid.IntRange(1, 50).Example()
			for len(sent) > 0 {
				n := min(size, len(sent))
				if _, err := shim.Write(sent[:n]); err != nil {
					return // the test fails on what is missing
				}
				sent = sent[n:]
			}
			shim.Close()
		}()
		got, err := io.ReadAll(r.out)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
		r.close()
	})
}

// TestFlush sends a mark and wants what was written before it to be readable.
func TestFlush(t *testing.T) {
	from, shim, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r, err := newRelay(from)
	if err != nil {
		t.Fatal(err)
	}
	defer r.close()
	r.begin()
	if _, err := shim.WriteString("before"); err != nil {
		t.Fatal(err)
	}
	// The mark is closed after it was written, as the guest's own pipe would be.
	again := func() (*os.File, error) {
		return os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", shim.Fd()), os.O_WRONLY, 0)
	}
	if err := r.flush(t.Context(), again); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 100)
	if n, err := r.out.Read(got); err != nil || string(got[:n]) != "before" {
		t.Errorf("got %q, %v, want before", got[:n], err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.flush(ended, again); err == nil {
		t.Error("a flush without time: got nil, want an error")
	}
	if err := r.flush(t.Context(), func() (*os.File, error) { return nil, iotest.ErrTimeout }); err == nil {
		t.Error("a guest that has ended: got nil, want an error")
	}
	shim.Close()
}
