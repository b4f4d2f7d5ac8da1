package code

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/internal/schema"
)

// Structured content is also sent as text, for hosts that read only text. Answers about runs
// have separate texts: see answer_test.go.
func TestStructuredContentEqualsText(t *testing.T) {
	s, _ := newServer(t)
	session := connect(t, s, "2025-11-25", nil)
	for name, args := range map[string]map[string]any{
		"search_tools":        {},
		"get_tool_definition": {"serverId": "crm", "name": "delete_contact"},
		"get_run":             {"run_id": "run_none"},
		"cancel_run":          {"run_id": "run_none"},
	} {
		res := callTool(t, session, name, args)
		var text any
		if err := json.Unmarshal([]byte(res.Content[0].(*mcp.TextContent).Text), &text); err != nil {
			t.Errorf("%s: the text is not JSON: %v", name, err)
		}
		if diff := cmp.Diff(text, res.StructuredContent); diff != "" {
			t.Errorf("%s: text and structured content differ:\n%s", name, diff)
		}
	}
}

// Every structured answer is valid for the output schema of its tool.
func TestAnswersFitTheirSchemas(t *testing.T) {
	s, runs := newServer(t)
	session := connect(t, s, "2025-11-25", nil)
	list, err := session.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	compiled := map[string]*schema.Schema{}
	for _, tool := range list.Tools {
		for kind, raw := range map[string]any{"": tool.OutputSchema, "input of ": tool.InputSchema} {
			text, err := json.Marshal(raw)
			if err != nil {
				t.Fatal(err)
			}
			if compiled[kind+tool.Name], err = schema.Compile(text); err != nil {
				t.Fatalf("the schema of the %s%s: %v", kind, tool.Name, err)
			}
		}
	}
	calls := []struct {
		name string
		args map[string]any
	}{
		{"search_tools", map[string]any{"query": "contact", "detail": "name"}},
		{"search_tools", map[string]any{"query": "zzzzzz"}},
		{"get_tool_definition", map[string]any{"serverId": "crm", "name": "delete_contact"}},
		{"run_code", map[string]any{"language": "node", "code": "x"}},
		{"run_code", map[string]any{"language": "node", "code": "fail"}},
		{"run_code", map[string]any{"language": "node", "code": "wait", "background": true}},
		{"run_code", map[string]any{"language": "node", "code": "busy"}},
		{"get_run", map[string]any{"run_id": "run_none"}},
		{"get_run", map[string]any{"run_id": "THE LAST"}},
		{"get_run", map[string]any{"run_id": "THE FIRST"}},
		{"get_run", map[string]any{"run_id": "THE SECOND"}},
		{"cancel_run", map[string]any{"run_id": "THE LAST"}},
		{"cancel_run", map[string]any{"run_id": "run_none"}},
	}
	var ids []string // of the runs so far
	for _, c := range calls {
		switch c.args["run_id"] {
		case "THE FIRST":
			c.args["run_id"] = ids[0]
		case "THE SECOND":
			c.args["run_id"] = ids[1]
		case "THE LAST":
			c.args["run_id"] = ids[2]
			<-runs.waiting
			runs.waiting <- "" // for the next time
		}
		args, err := json.Marshal(c.args)
		if err != nil {
			t.Fatal(err)
		}
		if err := compiled["input of "+c.name].Validate(args); err != nil {
			t.Errorf("%s %s: the arguments do not fit the input schema: %v", c.name, args, err)
		}
		res := callTool(t, session, c.name, c.args)
		if c.name == "run_code" {
			ids = append(ids, runIDOf(res))
		}
		answer, err := json.Marshal(res.StructuredContent)
		if err != nil {
			t.Fatal(err)
		}
		if err := compiled[c.name].Validate(answer); err != nil {
			t.Errorf("%s %s: %s does not fit the output schema: %v", c.name, args, answer, err)
		}
	}
}

func TestBadArgumentsAreResults(t *testing.T) {
	s, _ := newServer(t)
	session := connect(t, s, "2025-11-25", nil)
	for name, c := range map[string]struct {
		tool string
		args any
		want string
	}{
		"no language": {"run_code", map[string]any{"code": "x"},
			"the argument \"language\" is missing or empty\nhint: say \"python\" or \"node\""},
		"no code": {"run_code", map[string]any{"language": "python"},
			`the argument "code" is missing or empty`},
		"empty code": {"run_code", map[string]any{"language": "python", "code": ""},
			`the argument "code" is missing or empty`},
		"code of another type": {"run_code", map[string]any{"language": "python", "code": 1},
			`the argument "code" must be a string`},
		"null": {"run_code", map[string]any{"language": "python", "code": nil},
			`the argument "code" is missing or empty`},
		"a text for a flag": {"run_code", map[string]any{"language": "python", "code": "x", "background": "yes"},
			`the argument "background" must be true or false`},
		"a negative timeout": {"run_code", map[string]any{"language": "python", "code": "x", "timeout_seconds": -1},
			`the argument "timeout_seconds" must be a number above 0`},
		"a zero timeout": {"run_code", map[string]any{"language": "python", "code": "x", "timeout_seconds": 0},
			`the argument "timeout_seconds" must be a number above 0`},
		"an unknown argument": {"run_code", map[string]any{"shell": "python"},
			"there is no argument \"shell\"\nhint: the arguments are background, code, language, timeout_seconds"},
		"an environment": {"run_code", map[string]any{"env": map[string]any{"A": "b"}},
			"there is no argument \"env\"\nhint: code gets no environment and no credentials: put values into the " +
				"code; tools hold their own credentials"},
		"a shell": {"run_code", map[string]any{"language": "bash", "code": "ls"},
			"the language \"bash\" does not run here\nhint: write Python: import subprocess and result = " +
				"subprocess.run(\"…\", shell=True, capture_output=True, text=True).stdout"},
		"several tools": {"get_tool_definition", map[string]any{"tools": []string{"crm.a", "crm.b"}},
			"one call returns one definition\nhint: call it for each: crm.a, crm.b"},
		"a list of arguments": {"get_run", []any{"run_1"},
			"the arguments are not a JSON object\nhint: pass an object with run_id"},
		"no arguments": {"get_run", nil, `the argument "run_id" is missing or empty`},
		"a limit too large": {"search_tools", map[string]any{"limit": 1000},
			`the argument "limit" must be a whole number from 1 to 200`},
		"a limit in parts": {"search_tools", map[string]any{"limit": 1.5},
			`the argument "limit" must be a whole number from 1 to 200`},
		"an unknown detail": {"search_tools", map[string]any{"detail": "all"},
			`unknown detail "all": use "name" or "name+description"`},
		"an unknown server": {"search_tools", map[string]any{"serverId": "crn"},
			"there is no server \"crn\"\nhint: the servers are crm, files"},
		"a missing server": {"search_tools", map[string]any{"serverId": "files"},
			"the server \"files\" is missing: the program npx was not found\nhint: use the other servers, or tell " +
				"the user"},
		"an empty server name": {"get_tool_definition", map[string]any{"serverId": "", "name": "x"},
			"the argument \"serverId\" is missing or empty\nhint: the servers are crm, files"},
		"two names for a tool": {"get_tool_definition",
			map[string]any{"serverId": "crm", "name": "x", "toolName": "y"},
			"there is no argument \"toolName\"\nhint: the arguments are name, serverId"},
		"an unknown tool": {"get_tool_definition", map[string]any{"serverId": "crm", "name": "list_contact"},
			"server \"crm\" has no tool \"list_contact\"; did you mean \"list_contacts\"?\nhint: search_tools finds " +
				"the names of servers and tools"},
		"a refused run": {"run_code", map[string]any{"language": "python", "code": "refuse"},
			"the language is unknown\nhint: use python"},
		"a refused start": {"run_code", map[string]any{"language": "python", "code": "refuse",
			"background": true}, "the language is unknown\nhint: use python"},
		"a run that went wrong": {"run_code", map[string]any{"language": "python", "code": "break"},
			"the sandbox did not start"},
	} {
		t.Run(name, func(t *testing.T) {
			res := callTool(t, session, c.tool, c.args)
			if got := textOf(res); got != c.want || !res.IsError {
				t.Errorf("got %q (isError %v), want %q as an error", got, res.IsError, c.want)
			}
		})
	}
}

// Arguments are accepted under the names that models know from other products.
func TestArgumentsByOtherNames(t *testing.T) {
	s, runs := newServer(t)
	session := connect(t, s, "2025-11-25", nil)
	for word, want := range map[string]string{
		"python": "python", "py": "python", "Python": "python", "python3": "python", "node": "node",
		"javascript": "node", "JavaScript": "node",
		"js": "node", "typescript": "node", "ts": "node", "nodejs": "node", " js ": "node", "ruby": "ruby",
	} {
		for _, name := range []string{"language", "lang"} {
			callTool(t, session, "run_code", map[string]any{name: word, "code": "x"})
			if got := runs.lastRequest().Language; got != want {
				t.Errorf("%s %q: got the language %q, want %q", name, word, got, want)
			}
		}
	}
	id := runIDOf(callTool(t, session, "run_code", map[string]any{"language": "python", "code": "x"}))
	for _, c := range []struct {
		tool string
		args map[string]any
		want string
	}{
		{"get_tool_definition", map[string]any{"serverId": "crm", "toolName": "list_contacts"}, "x-extra"},
		{"get_tool_definition", map[string]any{"server_id": "crm", "tool_name": "list_contacts"}, "x-extra"},
		{"get_tool_definition", map[string]any{"server": "crm", "tool": "list_contacts"}, "x-extra"},
		{"get_tool_definition", map[string]any{"serverId": "crm", "name": "list_contacts", "toolName": "list_contacts"},
			"x-extra"},
		{"search_tools", map[string]any{"serverId": "crm", "name": "list_contacts", "limit": 1}, "list_contacts"},
		{"search_tools", map[string]any{"serverId": "crm", "toolName": "list_contacts", "limit": 1}, "list_contacts"},
		{"get_run", map[string]any{"runId": id}, "done"},
		{"get_run", map[string]any{"id": id}, "done"},
		{"run_code", map[string]any{"language": "python", "source": "y"}, "y"},
		{"get_tool_definition", map[string]any{"name": "crm.list_contacts"}, "x-extra"},
		{"get_tool_definition", map[string]any{"tool": "mcp__crm__list_contacts"}, "x-extra"},
		{"get_tool_definition", map[string]any{"tools": []string{"crm.list_contacts"}}, "x-extra"},
		{"get_tool_definition", map[string]any{"name": "ListContacts"}, "x-extra"},
		{"get_tool_definition", map[string]any{"serverId": "CRM", "name": "list-contacts"}, "x-extra"},
		{"get_tool_definition", map[string]any{"arguments": map[string]any{"server": "crm", "tool": "list_contacts"}},
			"x-extra"},
		{"search_tools", map[string]any{"q": "list contacts", "top_k": "1"}, "list_contacts"},
		{"search_tools", map[string]any{"keywords": []string{"list", "contacts"}, "serverId": "Crm"}, "list_contacts"},
		{"search_tools", map[string]any{"Query": "list contacts", "limit": nil}, "list_contacts"},
		{"run_code", map[string]any{"python": "y = 1"}, "y = 1"},
		{"run_code", map[string]any{"code": map[string]any{"py": "y = 1"}}, "y = 1"},
		{"run_code", map[string]any{"code": []string{"y = 1", "z = 2"}}, "y = 1"},
		{"run_code", map[string]any{"code": "y = 1", "background": "false"}, "y = 1"},
	} {
		res := callTool(t, session, c.tool, c.args)
		text, err := json.Marshal(res.StructuredContent)
		if err != nil || res.IsError || !strings.Contains(string(text), c.want) {
			t.Errorf("%s %v: got %s, want %s", c.tool, c.args, textOf(res), c.want)
		}
	}
}

func TestTimeoutsThatModelsWrite(t *testing.T) {
	s, runs := newServer(t)
	session := connect(t, s, "2025-11-25", nil)
	for _, c := range []struct {
		name  string
		value any
		want  time.Duration
	}{
		{"timeout_seconds", "5", 5 * time.Second}, {"timeoutSeconds", 5, 5 * time.Second},
		{"timeout", 5, 5 * time.Second},
		{"timeout", 5000, 5 * time.Second}, {"timeout", "5s", 5 * time.Second},
		{"timeout", "500 ms", 500 * time.Millisecond},
		{"timeout_ms", 5000, 5 * time.Second}, {"timeoutMs", "2500", 2500 * time.Millisecond},
		{"time_limit", 7, 7 * time.Second},
	} {
		callTool(t, session, "run_code", map[string]any{"language": "python", "code": "x", c.name: c.value})
		if got := runs.lastRequest().Timeout; got != c.want {
			t.Errorf("%s: %v: got %v, want %v", c.name, c.value, got, c.want)
		}
	}
}

func TestLanguageFromTheCode(t *testing.T) {
	for code, want := range map[string]string{
		"from servers.crm import list_contacts\nresult = 1":           "python",
		"import json\nprint(json.dumps({}))":                          "python",
		"x = 5":                                                       "python",
		"for i in range(3):\n    pass":                                "python",
		"# a comment\nresult = None":                                  "python",
		"const a = 1;\nglobalThis.result = a;":                        "node",
		"import { x } from \"./servers/crm/index.js\";\nawait x({});": "node",
		"export default async () => 1":                                "node",
		"// a comment\nconsole.log('def f():')":                       "node",
		"result = (await f()).data;":                                  "",
		"1 + 1":                                                       "",
		"print(`x`);\nconst a = 1;":                                   "",
		"```python\nconst = 1\n```":                                   "python",
		"```ts\nresult = 1\n```":                                      "node",
		"```\nx = 1\n```":                                             "python",
		"text = \"const x = () => 1; console.log(x)\"":                "python",
		"const text = `from a import b`;":                             "node",
		"def f(a, b):\n    return a || b\nconst x = f(1, 2)":          "",
	} {
		if got := languageOf("", code); got != want {
			t.Errorf("%q: got %q, want %q", code, got, want)
		}
	}
	if got := languageOf("python", "```js\n1\n```"); got != "node" {
		t.Errorf("a fence of another language: got %q, want that of the fence", got)
	}
}

func TestUnknownToolsSayWhatToDo(t *testing.T) {
	s, _ := newServer(t)
	session := connect(t, s, "2025-11-25", nil)
	for name, want := range map[string]string{
		"list_contacts":           "programs. ",
		"crm.list_contacts":       "run_code",
		"mcp__crm__list_contacts": "run_code",
		"crm__listContacts":       "run_code",
		"crm":                     `"crm" is a server`,
		"runCode":                 `its name is "run_code"`,
		"mcp__airlock__run_code":  `its name is "run_code"`,
		"execute_code":            `call "run_code"`,
		"list_tools":              `call "search_tools"`,
		"run_codes":               `did you mean "run_code"?`,
		"weather":                 "the tools are search_tools, get_tool_definition, run_code",
	} {
		_, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: map[string]any{"all": true}})
		var refused *jsonrpc.Error
		if !errors.As(err, &refused) || refused.Code != jsonrpc.CodeInvalidParams ||
			!strings.Contains(refused.Message, want) {
			t.Errorf("%s: got %v, want an error about params with %q", name, err, want)
		}
	}
}

func TestInPython(t *testing.T) {
	given := `{"a":true,"b":[null,false,"true \"null\""],"c":1.5}`
	if got, want := inPython(json.RawMessage(given)),
		`{"a":True,"b":[None,False,"true \"null\""],"c":1.5}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
