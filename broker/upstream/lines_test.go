package upstream

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// describe writes what a reader found in some output, a line each.
func describe(t testing.TB, output string, limit int) []string {
	t.Helper()
	reader := newLineReader(strings.NewReader(output), limit)
	var found []string
	for {
		line, err := reader.next()
		if err != nil {
			if !errors.Is(err, io.EOF) {
				t.Fatalf("got %v, want io.EOF at the end", err)
			}
			return found
		}
		if line.tooLarge != nil {
			found = append(found, fmt.Sprintf("too large: %v", line.tooLarge.Raw()))
		}
		if line.rubbish != "" {
			found = append(found, fmt.Sprintf("rubbish: %.20s", line.rubbish))
		}
		for _, message := range line.messages {
			switch m := message.(type) {
			case *jsonrpc.Request:
				found = append(found, fmt.Sprintf("request %s %s", m.Method, m.Params))
			case *jsonrpc.Response:
				found = append(found, fmt.Sprintf("response %v %s", m.ID.Raw(), m.Result))
			}
		}
	}
}

func TestLines(t *testing.T) {
	const limit = 200
	long := strings.Repeat("x", 100_000)
	tests := []struct {
		name, output string
		want         []string
	}{
		{"nothing", "", nil},
		{"empty lines", "\n\r\n \t\n", nil},
		{"a response", `{"jsonrpc":"2.0","id":1,"result":{"x":1.0}}` + "\n", []string{`response 1 {"x":1.0}`}},
		{"a response without a line feed", `{"jsonrpc":"2.0","id":1,"result":{}}`, []string{"response 1 {}"}},
		{"carriage returns", `{"jsonrpc":"2.0","id":1,"result":{}}` + "\r\n", []string{"response 1 {}"}},
		{"a notification", `{"jsonrpc":"2.0","method":"m","params":{}}` + "\n", []string{"request m {}"}},
		{"a log between messages", "starting\n" + `{"jsonrpc":"2.0","id":1,"result":{}}` + "\n[INFO] done\n",
			[]string{"rubbish: starting", "response 1 {}", "rubbish: [INFO] done"}},
		{"JSON that is no JSON-RPC", `{"level":"info"}` + "\n7\nnull\n",
			[]string{`rubbish: {"level":"info"}`, "rubbish: 7", "rubbish: null"}},
		{"an answer to no request", `{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"x"}}` + "\n",
			[]string{`rubbish: {"jsonrpc":"2.0","id`}},
		{"a batch", `[{"jsonrpc":"2.0","id":1,"result":1},{"jsonrpc":"2.0","method":"m"}]` + "\n",
			[]string{"response 1 1", "request m "}},
		{"a method without a name", `{"jsonrpc":"2.0","method":""}` + "\n", []string{`rubbish: {"jsonrpc":"2.0","me`}},
		{"an empty batch", "[]\n", []string{"rubbish: []"}},
		{"half a batch", `[{"jsonrpc":"2.0","id":1,"result":1},7]` + "\n", []string{`rubbish: [{"jsonrpc":"2.0","i`}},
		{"bytes that are not UTF-8", "\xff\xfe\n", []string{"rubbish: \uFFFD"}},
		{"a long log line", long + "\n" + `{"jsonrpc":"2.0","id":1,"result":{}}` + "\n",
			[]string{"rubbish: xxxxxxxxxxxxxxxxxxxx", "response 1 {}"}},
		{"a long response, ID first", `{"jsonrpc":"2.0","id":7,"result":{"id":9,"x":"` + long + `"}}` + "\nlog\n",
			[]string{"too large: 7", "rubbish: log"}},
		{"a long response, ID last", `{"result":{"x":"` + long + `","id":9},"jsonrpc":"2.0","id": 7 }` + "\n",
			[]string{"too large: 7"}},
		{"a long response at the end of the stream", `{"jsonrpc":"2.0","id":7,"result":"` + long + `"}`,
			[]string{"too large: 7"}},
		{"a long error", `{"jsonrpc":"2.0","id":"a\"b","error":"` + long + `"}` + "\n", []string{`too large: a"b`}},
		{"a long request is not an answer", `{"jsonrpc":"2.0","id":7,"method":"m","params":"` + long + `"}` + "\n",
			[]string{`rubbish: {"jsonrpc":"2.0","id`}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, describe(t, test.output, limit)); diff != "" {
				t.Errorf("lines differ (-want +got):\n%s", diff)
			}
		})
	}
}

func TestIDScanner(t *testing.T) {
	tests := []struct {
		name, text string
		want       any // nil: none
	}{
		{"a number", `{"id":12,"result":1}`, int64(12)},
		{"text", `{"id":"a-1","result":1}`, "a-1"},
		{"at the end", `{"result":[{"id":1},{"id":2}],"id":3}`, int64(3)},
		{"within text", `{"result":"{\"id\":1}","id":3}`, int64(3)},
		{"a key that begins alike", `{"idx":1,"result":1,"id":3}`, int64(3)},
		{"text that is no key", `{"x":"id","result":1,"id":3}`, int64(3)},
		{"none", `{"result":{"id":1}}`, nil},
		{"null", `{"id":null,"result":1}`, nil},
		{"an object", `{"id":{"a":1},"result":1}`, nil},
		{"endless", `{"id":` + strings.Repeat("1", 1000) + `,"result":1}`, nil},
		{"no result", `{"id":1,"params":{}}`, nil},
		{"cut off", `{"result":1,"id":1`, nil},
		{"a list", `[{"id":1,"result":1}]`, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var scan idScanner
			for i := range len(test.text) { // pieces may end anywhere
				scan.write([]byte{test.text[i]})
			}
			id, ok := scan.id()
			if ok != (test.want != nil) || id.Raw() != test.want {
				t.Errorf("got %v (%v), want %v", id.Raw(), ok, test.want)
			}
		})
	}
}

// For every output of a server, each line is a message, invalid or too large, and no message
// is lost or invented.
func FuzzLines(f *testing.F) {
	f.Add("starting\n{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\n[1]\n")
	f.Add("{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":\"" + strings.Repeat("x", 300) + "\"}\n")
	f.Add("{\"id\":\"\\u0022\",\"result\":{\"id\":[]}" + strings.Repeat(" ", 300) + "}")
	f.Fuzz(func(t *testing.T, output string) {
		lines := 0
		for line := range strings.Lines(output) {
			if len(bytes.TrimSpace([]byte(line))) > 0 {
				lines++
			}
		}
		reader := newLineReader(strings.NewReader(output), 200)
		found := 0
		for {
			line, err := reader.next()
			if err != nil {
				break
			}
			found++
			for _, message := range line.messages {
				raw, err := jsonrpc.EncodeMessage(message)
				if err != nil {
					t.Fatalf("a message that was read cannot be written: %v", err)
				}
				if _, err := decodeMessage(raw); err != nil {
					t.Errorf("a message that was read and written cannot be read again: %v", err)
				}
			}
		}
		if found > lines {
			t.Errorf("got %d lines, want at most %d", found, lines)
		}
	})
}

// The ID that the scanner finds in an object is the one that a decoder finds.
func FuzzIDScanner(f *testing.F) {
	f.Add(`{"id":12,"result":1}`)
	f.Add(`{"result":[{"id":1},{"id":2}],"id":"a\"b"}`)
	f.Fuzz(func(t *testing.T, text string) {
		var scan idScanner
		scan.write([]byte(text))
		got, ok := scan.id()
		message, err := jsonrpc.DecodeMessage([]byte(text))
		if err != nil || !json.Valid([]byte(text)) || strings.Contains(text, `\u`) {
			return // keys may be written in other ways; a server that does so is not answered
		}
		if response, is := message.(*jsonrpc.Response); is && ok && response.ID != got {
			t.Errorf("got %v, want %v", got.Raw(), response.ID.Raw())
		}
	})
}

// A response that is nested deeper than JSON is read is answered at once: its
// caller would wait for nothing.
func TestDeepResponseHasAnAnswer(t *testing.T) {
	for _, levels := range []int{maxLevels + 1, 2_000, 9_999, 10_001, 100_000} {
		deep := strings.Repeat("[", levels) + strings.Repeat("]", levels)
		response := `{"jsonrpc":"2.0","id":7,"result":{"structuredContent":` + deep + `}}`
		got := parseLine([]byte(response))
		if len(got.tooDeep) != 1 || got.tooDeep[0].Raw() != int64(7) || len(got.messages) > 0 {
			t.Errorf("%d levels: got %+v, want the ID 7", levels, got.tooDeep)
		}
		got = parseLine([]byte(`[{"jsonrpc":"2.0","id":8,"result":{}},` + response + `]`))
		if len(got.tooDeep) != 1 || got.tooDeep[0].Raw() != int64(7) || len(got.messages) != 1 {
			t.Errorf("%d levels in a batch: got %+v, want the ID 7 and one message", levels, got.tooDeep)
		}
		if got := parseLine([]byte(`{"jsonrpc":"2.0","method":"x","params":` + deep + `}`)); got.tooDeep != nil {
			t.Errorf("%d levels in a notification: got an ID, %+v", levels, got.tooDeep)
		}
	}
	for levels := maxLevels - 10; levels <= maxLevels; levels++ { // all of the message counts
		text := []byte(`{"jsonrpc":"2.0","id":7,"result":` +
			strings.Repeat("[", levels-1) + strings.Repeat("]", levels-1) + `}`)
		if got := parseLine(text); len(got.messages) != 1 {
			t.Errorf("%d levels: got %+v, want a message", levels, got)
		}
	}
}
