package verb

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

func TestListsAreNeverNull(t *testing.T) {
	type inner struct {
		Names []string          `json:"names"`
		Map   map[string][]int  `json:"map"`
		Some  []string          `json:"some,omitempty"`
		Raw   json.RawMessage   `json:"raw"`
		None  *inner            `json:"none"`
		Any   any               `json:"any"`
		Time  time.Time         `json:"time"`
		Keys  map[string]*inner `json:"keys,omitempty"`
	}
	type embedding struct {
		inner
		List []inner `json:"list"`
		own  []string
	}
	when := time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)
	value := map[string]any{"a": embedding{List: []inner{{Time: when, Map: map[string][]int{"x": nil}, Any: []any(nil),
		Keys: map[string]*inner{"k": {}}}}, own: nil}, "b": []string(nil), "c": nil}
	var out strings.Builder
	if err := PrintLine(&out, value); err != nil {
		t.Fatal(err)
	}
	if line, err := json.Marshal(withLists(embedding{})); err != nil ||
		!strings.HasPrefix(string(line), `{"names":[],"map":{},`) || !strings.HasSuffix(string(line), `"list":[]}`) {
		t.Errorf("what is embedded: got %s, %v", line, err)
	}
	want := `{"names":[],"map":{"x":[]},"raw":null,"none":null,"any":[],"time":"2026-11-22T00:00:00Z",` +
		`"keys":{"k":{"names":[],"map":{},`
	if got := out.String(); !strings.Contains(got, want) || !strings.Contains(got, `"b":[],"c":null}`) ||
		strings.Count(got, "\n") != 1 {
		t.Errorf("got %s, want %s in it", got, want)
	}
	if list := value["a"].(embedding).List; list[0].Names != nil {
		t.Error("the value itself was changed")
	}
	if err := PrintLine(&out, nil); err != nil {
		t.Error(err)
	}
}
