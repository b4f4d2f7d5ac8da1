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

// Issue 24, item 4: an object that is not a message is answered with its ID, so that its sender does not wait.
func TestObjectsThatAreNoMessages(t *testing.T) {
	for text, id := range map[string]string{
		`{"jsonrpc":"2.0","id":1,"Method":"ping"}`: "1", `{"jsonrpc":"2.0","id":2}`: "2",
		`{"jsonrpc":"1.0","id":3,"method":"ping"}`: "3", `{"id":"4","method":"ping"}`: `"4"`,
		`{"JSONRPC":"2.0","id":5,"method":"ping"}`: "5", `{"jsonrpc":"2.0","id":6,"method":7}`: "6",
		`{"jsonrpc":"2.0","id":null,"method":"ping"}`: "null",
	} {
		answer, forHost := unreadable([]byte(text))
		if !forHost || !strings.Contains(string(answer), `"id":`+id+`,"error":{"code":-32600`) {
			t.Errorf("%s: got %s, %t", text, answer, forHost)
		}
	}
	for _, text := range []string{`{"jsonrpc":"2.0","id":1,"method":"x"}`, `{"jsonrpc":"2.0","method":"x","params":5}`,
		`{"jsonrpc":"2.0","id":1,"result":null}`, `{"jsonrpc": "2.0", "id": 1, "error": {}}`, `[]`, `5`, ``, `{`, `{}`,
		`{"jsonrpc":"1.0","method":"x"}`} {
		if answer, _ := unreadable([]byte(text)); answer != nil {
			t.Errorf("%s: got %s, want it to be left to the transport", text, answer)
		}
	}
}
