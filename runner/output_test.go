package runner

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"
)

// TestCollectorKeepsBothEnds compares with the whole stream for writes of any size.
func TestCollectorKeepsBothEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := int64(rapid.IntRange(0, 10_000).Draw(t, "limit"))
		var whole bytes.Buffer
		c := newCollector(limit, func(int) bool { return true })
		r, w := io.Pipe()
		go c.drain(r, c.last)
		for range rapid.IntRange(0, 30).Draw(t, "writes") {
			size := rapid.SampledFrom([]int{0, 1, 7, 1000, 20_000, 70_000}).Draw(t, "size")
			line := strings.Repeat(rapid.StringMatching(`[a-z]`).Draw(t, "letter"), size) + rapid.SampledFrom(
				[]string{"", "\n"}).Draw(t, "end")
			whole.WriteString(line)
			if _, err := io.WriteString(w, line); err != nil {
				t.Fatal(err)
			}
		}
		w.Close()
		<-c.ended()
		got := c.output()
		if got.Total != int64(whole.Len()) {
			t.Fatalf("total: got %d, want %d", got.Total, whole.Len())
		}
		if want := whole.Bytes()[:min(int64(whole.Len()), limit+headSlack)]; !bytes.Equal(got.Head, want) {
			t.Errorf("head: got %d bytes, want %d", len(got.Head), len(want))
		}
		checkTail(t, got.Tail, whole.Bytes())
	})
}

func checkTail(t *rapid.T, tail, whole []byte) {
	if len(tail) > tailLimit || !bytes.HasSuffix(whole, tail) {
		t.Fatalf("tail: got %d bytes that do not end the stream, want at most %d that do", len(tail), tailLimit)
	}
	if len(tail) == len(whole) {
		return
	}
	before := whole[len(whole)-len(tail)-1]
	window := whole[max(0, len(whole)-tailLimit):]
	if before != '\n' && bytes.IndexByte(window, '\n') >= 0 {
		t.Errorf("tail: begins within a line although its window holds the beginning of one")
	}
}

func TestCollectorEndsWithABrokenStream(t *testing.T) {
	c := newCollector(100, func(int) bool { return true })
	go c.drain(io.MultiReader(strings.NewReader("some"), iotest.ErrReader(io.ErrUnexpectedEOF)), c.last)
	<-c.ended()
	if got := c.output(); string(got.Head) != "some" {
		t.Errorf("got %q, want what had arrived", got.Head)
	}
}
