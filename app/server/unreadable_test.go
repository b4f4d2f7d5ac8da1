package server

import (
	"strconv"
	"strings"
	"testing"
)

// A message that is nested too deeply is answered with its ID, so that its sender does not wait.
func TestDeepMessagesHaveAnAnswer(t *testing.T) {
	for _, levels := range []int{maxLevels + 1, 5_000, 9_999, 10_001, 100_000} {
		for name, deep := range map[string]string{
			"lists":   strings.Repeat("[", levels) + strings.Repeat("]", levels),
			"objects": strings.Repeat(`{"id":1,"a":`, levels) + "1" + strings.Repeat("}", levels),
			"broken":  strings.Repeat("[", levels),
		} {
			tests := []struct {
				text, id string
				forHost  bool
			}{
				{`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":` + deep + `}`, "7", true},
				{`{"jsonrpc":"2.0","method":"tools/call","id":"a\"b","params":{"x":` + deep + `}}`, `"a\"b"`, true},
				{`{"jsonrpc":"2.0","method":"notifications/x","params":` + deep + `}`, "null", true},
				{`{"jsonrpc":"2.0","id":3,"result":` + deep + `}`, "3", false},
				{deep, "null", true},
			}
			for _, test := range tests {
				if name == "objects" && test.text == deep {
					test.id = "1"
				}
				answer, forHost := unreadable([]byte(test.text))
				if want := `"id":` + test.id + `,"error"`; forHost != test.forHost ||
					!strings.Contains(string(answer), want) {
					t.Errorf("%d %s %.40s: got %s, %t, want %s, %t", levels, name, test.text, answer, forHost, want,
						test.forHost)
				}
			}
			behind := `{"jsonrpc":"2.0","method":"tools/call","params":` + deep + `,"id":` + strconv.Itoa(levels) + `}`
			if answer, _ := unreadable([]byte(behind)); name != "broken" &&
				!strings.Contains(string(answer), `"id":`+strconv.Itoa(levels)+`,`) {
				t.Errorf("%d %s: the ID behind the params: got %s", levels, name, answer)
			}
		}
	}
	if answer, _ := unreadable([]byte(`{"jsonrpc":"2.0","id":1,"method":"x","params":` +
		strings.Repeat("[", 900) + strings.Repeat("]", 900) + `}`)); answer != nil {
		t.Error("900 levels count as too deep")
	}
}
