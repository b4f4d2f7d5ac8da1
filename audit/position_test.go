package audit

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
)

// A position's lines have fixed widths, so that a new position overwrites the old one exactly. A
// written position is read back unchanged.
func TestPositionAsText(t *testing.T) {
	hash := "sha256:" + strings.Repeat("0f", 32)
	for name, p := range map[string]position{
		"at the beginning": {origin: "o"},
		"within": {boot: "0123abcd", origin: "log/of a machine", first: 3, durable: mark{41, hash},
			base: mark{42, hash}, pending: []mark{{43, hash}, {44, hash}}},
		"far on": {boot: strings.Repeat("b", 36), origin: "o", first: 1 << 52, durable: mark{1 << 52, hash},
			base: mark{1<<53 - 1, hash}},
	} {
		text := string(p.encode([]byte("x")))[1:]
		want := fmt.Sprintf(
			"airlock audit position\nboot %36s\n%s\nfirst %020d\ndurable %020d %71s\nbase %020d %71s\npending %06d\n%s",
			p.boot, p.origin, p.first, p.durable.seq, p.durable.hash, p.base.seq, p.base.hash, len(p.pending),
			strings.Repeat(hash+"\n", len(p.pending)))
		if text != want {
			t.Errorf("%s: got %q, want %q", name, text, want)
		}
		if read, err := parsePosition([]byte(text)); err != nil || !reflect.DeepEqual(*read, p) {
			t.Errorf("%s: read %+v, %v, want %+v", name, read, err, p)
		}
	}
	if got := string(appendNumber(nil, math.MaxUint64, 20)); got != fmt.Sprint(uint64(math.MaxUint64)) {
		t.Errorf("got %s", got)
	}
}
