package code

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/app/server/servertest"
)

// misshapenRequests are common mistakes of host authors, with the expected errors.
var misshapenRequests = []struct{ name, method, params, want string }{
	{"a text in the place of the params", "tools/call", `"x"`,
		`the params of tools/call do not have their form: the JSON value is a string, not an object`},
	{"a list in the place of the params", "ping", `[]`,
		`the params of ping do not have their form: the JSON value is a list, not an object`},
	{"a number in the place of a tool's name", "tools/call", `{"name":7}`,
		`the params of tools/call do not have their form: "name" is a number, not a string`},
	{"a number in the place of _meta", "tools/call", `{"_meta":7,"name":"x"}`,
		`the params of tools/call do not have their form: "_meta" is a number, not an object`},
	{"a number in the place of a cursor", "tools/list", `{"cursor":7}`,
		`the params of tools/list do not have their form: "cursor" is a number, not a string`},
	{"a number in the place of a prompt's argument", "prompts/get", `{"name":"code_mode","arguments":{"task":7}}`,
		`the params of prompts/get do not have their form: "arguments.task" is a number, not a string`},
	{"a number in the place of the URI of a subscription", "resources/subscribe", `{"uri":7}`,
		`the params of resources/subscribe do not have their form: "uri" is a number, not a string`},
	{"a number in the place of a level", "logging/setLevel", `{"level":7}`,
		`the params of logging/setLevel do not have their form: "level" is a number, not a string`},
	{"no URI", "resources/read", `{"URI":"x"}`, `the params of resources/read have no "uri"`},
	{"no URI of a subscription", "resources/subscribe", `{}`, `the params of resources/subscribe have no "uri"`},
	{"no name of a tool", "tools/call", `{"Name":"run_code"}`, `the params of tools/call have no "name"`},
	{"no name of a prompt", "prompts/get", `{}`, `the params of prompts/get have no "name"`},
	{"nothing to complete", "completion/complete", `{"ref":{"type":"ref/prompt","name":"x"}}`,
		`the params of completion/complete have no "argument"`},
	{"a number in the place of the revision", "initialize", `{"protocolVersion":7}`,
		`the params of initialize do not have their form: "protocolVersion" is a number, not a string`},
}

// checkForm checks that an answer has the code -32602 and the wanted sentence without Go types.
func checkForm(t *testing.T, line, want string) {
	t.Helper()
	var answer struct {
		ID    int
		Error struct {
			Code    int
			Message string
		}
	}
	if err := json.Unmarshal([]byte(line), &answer); err != nil || answer.ID != 5 || answer.Error.Code != -32602 ||
		answer.Error.Message != want {
		t.Errorf("got %s (%v), want -32602 with %q for request 5", line, err, want)
	}
}

func TestMisshapenParamsAreExplained(t *testing.T) {
	s, _ := newServer(t)
	out, in := serve(t, s)
	lines := bufio.NewScanner(out)
	web := httptest.NewServer(s.Handler(servertest.LocalUser("user:ann"), nil))
	t.Cleanup(web.Close)
	for _, test := range misshapenRequests {
		request := fmt.Sprintf(`{"jsonrpc":"2.0","id":5,"method":%q,"params":%s}`, test.method, test.params)
		t.Run(test.name+", on stdio", func(t *testing.T) {
			if _, err := fmt.Fprintln(in, request); err != nil {
				t.Fatal(err)
			}
			if !lines.Scan() {
				t.Fatalf("no answer: %v", lines.Err())
			}
			checkForm(t, lines.Text(), test.want)
		})
		t.Run(test.name+", over HTTP", func(t *testing.T) {
			res, err := http.Post(web.URL, "application/json", strings.NewReader(request))
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			text, err := io.ReadAll(res.Body)
			if err != nil {
				t.Fatal(err)
			}
			checkForm(t, string(text), test.want)
		})
	}
}
