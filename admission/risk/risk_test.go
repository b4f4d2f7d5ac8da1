package risk_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/admission/risk"
	"github.com/airlock-mcp/airlock/internal/strictjson"
	"github.com/airlock-mcp/airlock/policies"
)

// assess returns the risk of a call of a tool that the operator declared to only read.
func assess(t testing.TB, name, arguments string) risk.Assessment {
	t.Helper()
	value, err := strictjson.Value([]byte(arguments))
	if err != nil {
		t.Fatalf("%s: %v", arguments, err)
	}
	a, err := risk.Assess(t.Context(), risk.Subject{
		Name: name, Tools: []risk.Declared{{Risk: policies.RiskLow}}, Call: true, Arguments: value,
	})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func object(name string, value any) string {
	raw, err := json.Marshal(map[string]any{name: value})
	if err != nil {
		panic(err) // strings and numbers can always be encoded
	}
	return string(raw)
}

// A declared risk raises the risk and never lowers it.
func TestDeclaredRisks(t *testing.T) {
	for _, c := range []struct {
		name     string
		call     bool
		declared []policies.Risk
		want     policies.Risk
	}{
		{"lookup", true, []policies.Risk{policies.RiskLow}, policies.RiskLow},
		{"lookup", true, []policies.Risk{policies.RiskUnknown}, policies.RiskHigh},
		{"lookup", true, []policies.Risk{policies.RiskCritical}, policies.RiskCritical},
		{"lookup", false, nil, policies.RiskLow},
		{"lookup", false, []policies.Risk{policies.RiskUnknown}, policies.RiskHigh},
		{"lookup", false, []policies.Risk{policies.RiskLow, policies.RiskCritical}, policies.RiskCritical},
		{"read_file", true, []policies.Risk{policies.RiskUnknown}, policies.RiskHigh},
		{"read_file", false, []policies.Risk{policies.RiskUnknown}, policies.RiskLow}, // it need not be this tool
		{"read_file", false, []policies.Risk{policies.RiskCritical}, policies.RiskCritical},
		{"delete_file", true, []policies.Risk{policies.RiskLow}, policies.RiskCritical},
		{"send_email", true, []policies.Risk{policies.RiskLow}, policies.RiskMedium},
	} {
		s := risk.Subject{Name: c.name, Call: c.call, Arguments: map[string]any{}}
		for _, declared := range c.declared {
			s.Tools = append(s.Tools, risk.Declared{Risk: declared})
		}
		if got, err := risk.Assess(t.Context(), s); err != nil || got.Risk != c.want {
			t.Errorf("%+v: %+v, %v, want %s", c, got, err, c.want.Level())
		}
	}
}

// Texts that a schema describes as SQL, commands or code are judged strictly.
func TestSchemasSayWhatIsExecuted(t *testing.T) {
	const of = `{"type": "object", "properties": {
		"a": {"type": "string", "description": "The SQL query to run."},
		"b": {"type": "array", "items": {"type": "string", "contentMediaType": "text/x-python"}},
		"c": {"type": "object", "properties": {"d": {"type": "string", "format": "shell"}}},
		"e": {"type": "string", "description": "A question in plain words"}}}`
	for arguments, want := range map[string]policies.Risk{
		`{"a": "SELECT 1"}`:                          policies.RiskLow,
		`{"a": "VACUUM"}`:                            policies.RiskHigh,
		`{"a": "SELECT 'unclosed"}`:                  policies.RiskCritical,
		`{"b": ["print(1)"]}`:                        policies.RiskCritical,
		`{"c": {"d": "uptime"}}`:                     policies.RiskCritical,
		`{"e": "what does VACUUM do in a database"}`: policies.RiskLow,
	} {
		value, err := strictjson.Value([]byte(arguments))
		if err != nil {
			t.Fatal(err)
		}
		got, err := risk.Assess(t.Context(), risk.Subject{
			Name: "lookup", Call: true, Arguments: value,
			Tools: []risk.Declared{{Risk: policies.RiskLow, Schema: json.RawMessage(of)}},
		})
		if err != nil || got.Risk != want {
			t.Errorf("%s: %+v, %v, want %s", arguments, got, err, want.Level())
		}
		announced, err := risk.Assess(t.Context(), risk.Subject{
			Name: "lookup", Arguments: []any{value, map[string]any{}},
			Tools: []risk.Declared{{Risk: policies.RiskLow, Schema: json.RawMessage(of)}},
		})
		if err != nil || announced.Risk != want {
			t.Errorf("%s, announced: %+v, %v, want %s", arguments, announced, err, want.Level())
		}
	}
}

// An action of the kernel carried out SQL that was denied when it was announced, because the tool behind the action did
// not know that its argument is SQL.
func TestTheOperatorSaysWhatIsSQL(t *testing.T) {
	for _, query := range []string{"create user bob", "vacuum", "exec purge", "begin; x", "SELECT $$a$$"} {
		called := map[string]any{"q": query}
		for _, arguments := range []any{called, []any{map[string]any{}, called}} {
			of := risk.Subject{Name: "lookup", Arguments: arguments, Tools: []risk.Declared{{Risk: policies.RiskLow}}}
			before, err := risk.Assess(t.Context(), of)
			of.Tools[0].SQL = []string{"q"}
			after, other := risk.Assess(t.Context(), of)
			if err != nil || other != nil || before.Risk != policies.RiskLow || after.Risk < policies.RiskHigh {
				t.Errorf("%q: %+v, %v, then %+v, %v", query, before, err, after, other)
			}
		}
	}
}

// Issue 24: however arguments are made, the work is bounded; more than is looked through is not harmless.
func TestHugeAndHostileArguments(t *testing.T) {
	const size = 1 << 20
	nestedJSON := "DROP TABLE users"
	for range 12 {
		nestedJSON = object("q", nestedJSON)
	}
	if got := assess(t, "lookup", nestedJSON); got.Risk != policies.RiskCritical {
		t.Errorf("encodings inside each other: %+v", got)
	}
	for name, text := range map[string]string{
		"quotes": strings.Repeat(`'`, size), "quoted words": strings.Repeat(`"a b c d e f g" `, size/16),
		"backslashes":   strings.Repeat(`\`, size),
		"percent signs": strings.Repeat("%25", size/3), "brackets": strings.Repeat("[", size),
		"base64": strings.Repeat("QUFB", size/4), "digits": strings.Repeat("41", size/2),
		"dollars": strings.Repeat("$a", size/2), "comments": strings.Repeat("/*", size/2),
		"commands": strings.Repeat("ls;", size/3), "one word": strings.Repeat("a", size),
		"escaped quotes": strings.Repeat(`\"`, size/2), "entities": strings.Repeat("&amp;", size/5),
	} {
		if got := assess(t, "lookup", object("q", text)); got.Risk < policies.RiskLow {
			t.Errorf("%s: %+v", name, got)
		}
	}
	list := make([]any, 200_000)
	for i := range list {
		list[i] = "a"
	}
	assess(t, "lookup", object("q", list))
}

func TestAssessStopsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := risk.Assess(ctx, risk.Subject{Arguments: "x"}); err == nil {
		t.Error("got no error of a context that has ended")
	}
}

func TestTablesAreComplete(t *testing.T) {
	for name, want := range map[string]policies.ActCategory{"get_weather": policies.ActSafe,
		"drop_table": policies.ActDangerous, "read_file": policies.ActOther} {
		if got, ok := risk.MeaningOf(name); !ok || got.Category != want {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if _, ok := risk.MeaningOf("Read_file"); ok {
		t.Error("a name with another case has a meaning")
	}
}

// FuzzAssess looks for arguments that make Assess fail, or that it answers differently the second time.
func FuzzAssess(f *testing.F) {
	for _, encode := range encodings {
		f.Add(encode("DELETE FROM users"))
	}
	f.Fuzz(func(t *testing.T, arguments string) {
		value, err := strictjson.Value([]byte(arguments))
		if err != nil {
			t.Skip()
		}
		s := risk.Subject{Name: "lookup", Call: true, Arguments: value}
		first, err := risk.Assess(t.Context(), s)
		if err != nil || first.Risk < policies.RiskLow {
			t.Fatalf("%+v, %v", first, err)
		}
		if second, _ := risk.Assess(t.Context(), s); second.Risk != first.Risk {
			t.Errorf("%s, then %s", first.Risk.Level(), second.Risk.Level())
		}
	})
}

// Issue 24, item 1: SQL and commands in other shapes of arguments.
func TestOtherShapesOfArguments(t *testing.T) {
	const numbers = "68, 69, 76, 69, 84, 69, 32, 70, 82, 79, 77, 32, 117, 115, 101, 114, 115"
	for _, arguments := range []string{
		`{"x": "DELETE\tFROM\u000busers"}`, `{"x": "DELETE\u000bFROM\u000busers"}`,
		`{"x": "DELETE\u0000FROM\u0000users"}`,
		`{"x": "D\u200bE\u200bL\u200bE\u200bT\u200bE FROM users"}`, `{"x": "DEL\u00adETE FROM users"}`,
		`{"x": "\u202eDELETE FROM users\u202c"}`,
		`{"x": "DELETE\u200bFROM\u2060users"}`, `{"x": "D\u0415LETE\u200bFROM users"}`,
		`{"x": "DELETE FROM {t}", "t": "users"}`, `{"x": "drop table {{ name }}"}`,
		`{"x": "INSERT INTO {} VALUES (1)"}`,
		`{"x": [["DELETE", "FROM"], ["users"]]}`, `{"x": {"0": "DELETE", "1": "FROM", "2": "users"}}`,
		`{"x": [{"text": "DELETE"}, {"text": "FROM users"}]}`, `{"x": {"verb": "DELETE", "rest": "FROM users"}}`,
		`{"operation": "DELETE", "table": "users"}`, `{"op": "drop", "target": "table users"}`,
		`{"op": "truncate", "tables": "users"}`, `{"command": "rm", "args": ["-rf", "/"]}`,
		`{"x": {"program": "git", "argv": ["push", "--force"]}}`, `{"x": {"delete": "users", "deletes": []}}`,
		`{"x": "` + numbers + `"}`,
		`{"x": "01000100 01010010 01001111 01010000 00100000 01010100 01000001 01000010 ` +
			`01001100 01000101 00100000 01110101 01110011 01100101 01110010 01110011"}`,
		`{"x": "please run REVMRVRFIEZST00gdXNlcnM= now"}`, `{"x": "q=REVMRVRFIEZST00gdXNlcnM="}`,
		`{"x": "IRCUYRKUIUQEMUSPJUQHK43FOJZQ===="}`, `{"x": "44:45:4c:45:54:45:20:46:52:4f:4d:20:75:73:65:72:73"}`,
		`{"x": "=44=45=4C=45=54=45=20=46=52=4F=4D=20=75=73=65=72=73"}`,
		`{"x": "\\104\\105\\114\\105\\124\\105\\040\\106\\122\\117\\115\\040users"}`,
		`{"x": "\\u{44}\\u{45}\\u{4c}\\u{45}\\u{54}\\u{45} FROM users"}`, `{"x": "%u0044ELETE%u0020FROM%u0020users"}`,
		`{"x": "<q>DELETE FROM users</q>"}`, `{"x": "<a>1</a><q>DELETE FROM users</q>"}`,
		`{"x": "<![CDATA[DELETE FROM users]]>"}`, `{"x": "q=DELETE+FROM+users&x=1"}`,
		`{"x": "'DEL' || 'ETE FROM users'"}`, `{"x": "CONCAT('DELETE', ' FROM users')"}`,
		`{"x": "cur.execute('DEL' 'ETE FROM users')"}`, `{"x": "DELETE WHERE { ?s ?p ?o }"}`,
		`{"x": "DROP MEASUREMENT cpu"}`,
	} {
		if got := assess(t, "lookup", arguments); got.Risk < policies.RiskHigh {
			t.Errorf("%s: %+v, want HIGH or CRITICAL", arguments, got)
		}
	}
	for _, arguments := range []string{
		`{"command": "status", "args": ["--short"]}`, `{"action": "delete", "note": "later"}`, `{"drop": "10 %"}`,
		`{"table": "users", "operation": "select"}`, `{"ids": "1, 2, 3, 65, 66, 67"}`,
		`{"type": "update", "id": "x-1"}`,
		`{"token": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhbm4ifQ.abcdefghijklmnopqrstuv"}`,
		`{"html": "<p>Please <b>delete</b> this from the list</p>"}`, `{"text": "it's 'a' or 'b', 'c'"}`,
		`{"parts": [{"text": "Delete"}, {"text": "from the list"}]}`,
		`{"url": "https://example.org/?q=delete+row&x=1"}`,
		`{"rows": [["name", "update"], ["bob", "set"]]}`,
		`{"text": "emoji \ud83d\ude00 and flags \ud83c\udde8\ud83c\udded"}`,
		`{"0": "update", "1": "the page"}`, `{"time": "10:45:30", "mac": "44:45:4c:45:54:45"}`,
	} {
		if got := assess(t, "lookup", arguments); got.Risk != policies.RiskLow {
			t.Errorf("%s: %+v, want LOW", arguments, got)
		}
	}
}
