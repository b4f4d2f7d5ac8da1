package approval

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/airlock-mcp/airlock/internal/strictjson"
)

// Change is a pair of texts in the arguments of a call: a text and its replacement.
type Change struct {
	Where         string // the member with both, such as edits[0]; empty for the arguments themselves
	Before, After string
}

// Limits of Changes.
const (
	maxChanges     = 20
	maxChangeDepth = 10
)

// pairs are the member names that tools use for a text and its replacement, in lower case and
// without word separators.
var pairs = []struct{ before, after string }{
	{"oldtext", "newtext"}, {"oldstring", "newstring"}, {"oldstr", "newstr"}, {"oldvalue", "newvalue"},
	{"oldcontent", "newcontent"}, {"old", "new"},
	{"before", "after"}, {"search", "replace"}, {"find", "replace"}, {"original", "replacement"},
	{"original", "updated"}, {"previous", "current"},
}

// Changes finds pairs of texts in the arguments of a call that describe a change, such as oldText
// and newText. It only helps to read the arguments: their effect depends on the
// server.
func Changes(arguments json.RawMessage) []Change {
	value, err := strictjson.Value(arguments)
	if err != nil {
		return nil
	}
	var found []Change
	findChanges(nil, value, 0, &found)
	return found
}

// position is where a value is within another one. A text for each value would be as long as all names around it.
type position struct {
	within *position
	part   string // .name or [index]
}

func (p *position) String() string {
	text := ""
	for ; p != nil; p = p.within {
		text = p.part + text
	}
	return strings.TrimPrefix(text, ".")
}

func findChanges(where *position, value any, depth int, found *[]Change) {
	if depth > maxChangeDepth || len(*found) >= maxChanges {
		return
	}
	switch value := value.(type) {
	case []any:
		for i, item := range value {
			findChanges(&position{where, "[" + strconv.Itoa(i) + "]"}, item, depth+1, found)
		}
	case map[string]any:
		if before, after, ok := pairOf(value); ok && len(*found) < maxChanges {
			*found = append(*found, Change{where.String(), before, after})
		}
		for _, name := range slices.Sorted(maps.Keys(value)) {
			findChanges(&position{where, "." + name}, value[name], depth+1, found)
		}
	}
}

// pairOf returns the two texts of an object with such a pair.
func pairOf(object map[string]any) (before, after string, ok bool) {
	texts := map[string]string{}
	for name, value := range object {
		if text, is := value.(string); is {
			texts[strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(name))] = text
		}
	}
	for _, pair := range pairs {
		before, has := texts[pair.before]
		after, hasAfter := texts[pair.after]
		if has && hasAfter {
			return before, after, true
		}
	}
	return "", "", false
}
