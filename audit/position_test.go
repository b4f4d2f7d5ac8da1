package audit

import (
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
		if read, err := parsePosition([]byte(text)); err != nil || !reflect.DeepEqual(*read, p) {
			t.Errorf("%s: read %+v, %v, want %+v", name, read, err, p)
		}
	}
}
