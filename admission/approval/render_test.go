package approval_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/admission/approval"
	"github.com/airlock-mcp/airlock/internal/canon"
)

// with returns a question with the given arguments.
func with(arguments string) approval.Question {
	q := question()
	q.Arguments = json.RawMessage(arguments)
	return q
}

// Characters that a reader could overlook are written as escapes, in names and in arguments,
// whether they appear directly or as JSON escapes.
func TestWhatHidesIsShown(t *testing.T) {
	hidden := map[string]rune{
		"braille blank": '\u2800', "Hangul filler": '\u3164', "half-width Hangul filler": '\uffa0',
		"Hangul choseong filler": '\u115f',
		"null notehead":          '\U0001d159', "no-break space": '\u00a0', "ideographic space": '\u3000',
		"ogham space": '\u1680', "em space": '\u2003', "zero-width space": '\u200b',
		"zero-width joiner": '\u200d', "word joiner": '\u2060', "soft hyphen": '\u00ad', "byte order mark": '\ufeff',
		"right-to-left override": '\u202e',
		"right-to-left isolate":  '\u2067', "right-to-left mark": '\u200f', "tag A": '\U000e0041',
		"variation selector": '\ufe0f', "line separator": '\u2028',
		"private use": '\ue000', "delete": '\u007f', "escape": '\u001b', "bell": '\u0007', "invisible times": '\u2062',
		"combining grapheme joiner": '\u034f',
		"Mongolian vowel separator": '\u180e', "Khmer inherent vowel": '\u17b4', "object replacement is seen": 0,
		"Cyrillic a in a Latin word": 'а', "Greek omicron in a Latin word": 'ο', "Armenian o in a Latin word": 'օ',
		"full-width a":   'ａ',
		"mathematical a": '𝐚', "division slash": '∕', "fraction slash": '⁄', "one dot leader": '․',
		"full-width full stop": '．', "Greek question mark": '\u037e', "click": 'ǃ',
	}
	surroundings := map[string]string{"in a word": "ab%scd", "at the start": "%sab", "at the end": "ab%s",
		"twice": "ab%[1]s%[1]scd", "in a path": "/srv/ab%sc/x"}
	for name, r := range hidden {
		if r == 0 {
			continue
		}
		want := fmt.Sprintf(`\u{%x}`, r)
		for where, format := range surroundings {
			text := fmt.Sprintf(format, string(r))
			plain, err := json.Marshal(text)
			if err != nil {
				t.Fatal(err)
			}
			escaped := `"`
			for _, c := range text {
				if c > 0xffff {
					c -= 0x10000
					escaped += fmt.Sprintf(`\u%04x\u%04x`, 0xd800+c>>10, 0xdc00+c&0x3ff)
				} else {
					escaped += fmt.Sprintf(`\u%04X`, c)
				}
			}
			tool := question()
			tool.ToolName = text
			member := with(`{` + string(plain) + `:1}`)
			for how, q := range map[string]approval.Question{
				"as it is": with(`{"x":` + string(plain) + `}`), "escaped": with(`{"x":` + escaped + `"}`),
				"as a name": member, "as the tool": tool,
				"deep": with(`{"a":[{"b":[` + string(plain) + `]}]}`),
			} {
				if got := approval.Text(q); !strings.Contains(got, want) || strings.ContainsRune(got, r) {
					t.Errorf("%s %s, %s: got %q, want %s", name, where, how, got, want)
				}
			}
		}
	}
}

// Texts without such characters are shown unchanged.
func TestOrdinaryTextsStay(t *testing.T) {
	for _, text := range []string{
		"delete /srv/a b.txt", "Grüße aus Köln", "世界 こんにちは 안녕", "Привет, мир", "Ελληνικά", "مرحبا", "שלום",
		"naïve café", "a  b   c", "e\u0301t\u00e9", "price: 3 €", "😀", "x = \"y\"", `C:\dir`, "first\nsecond\tthird",
		"“quoted” – dash…",
	} {
		raw, err := json.Marshal(map[string]string{"x": text})
		if err != nil {
			t.Fatal(err)
		}
		escapes := strings.Count(approval.Text(with(string(raw))), `\u{`)
		if escapes > 0 {
			t.Errorf("%q is shown with %d escapes:\n%s", text, escapes, approval.Text(with(string(raw))))
		}
	}
}

func TestRowsOfSpacesAreCounted(t *testing.T) {
	for _, n := range []int{9, 40, 300, 5000} {
		spaces := strings.Repeat(" ", n)
		want := `\u{20}×` + map[int]string{9: "9", 40: "40", 300: "300", 5000: "5,000"}[n]
		tool, code := question(), question()
		tool.ToolName = "read" + spaces + "delete"
		code.Code = "x = 1;" + spaces + "delete_file()\n"
		code.CodeHash = canon.Digest([]byte(code.Code))
		for how, q := range map[string]approval.Question{
			"a text":  with(`{"path":"/srv/a` + spaces + `; rm -rf /"}`),
			"escaped": with(`{"path":"/srv/a` + strings.Repeat(`\u0020`, n) + `; rm"}`),
			"a name":  with(`{"path` + spaces + `x":1}`), "the tool": tool, "the code": code,
		} {
			if got := approval.Text(q); !strings.Contains(got, want) || n > 20 && strings.Contains(got, spaces) {
				t.Errorf("%d spaces in %s: got\n%s", n, how, got)
			}
		}
	}
}

// Escapes that only hide a character are decoded; those that JSON needs are kept, and no text can
// imitate an escape of Airlock.
func TestEscapesAreDecoded(t *testing.T) {
	tests := []struct{ arguments, want string }{
		{`{"cmd":"\u0072\u006d -\u0072f"}`, `"cmd": "rm -rf"`},
		{`{"cm\u0064":1}`, `"cmd": 1`},
		{`{"a":"\ud83d\ude00"}`, `"a": "😀"`},
		{`{"a":"\ud83d"}`, `"a": "\ud83d"`},
		{`{"a":"x\u0022y\u005cz"}`, `"a": "x\"y\\z"`},
		{`{"a":"x\"y\\z\/w\n\t"}`, `"a": "x\"y\\z/w\n\t"`},
		{`{"a":"\\u{202e}"}`, `"a": "\\u{202e}"`},
		{`{"a":1e400,"b":-0.0,"c":12345678901234567890}`, `"a": 1e400`},
		{`{"a":null,"b":true,"c":[],"d":{}}`, `"c": []`},
		{`{"a":1,"a":2}`, `"a": 2`},
	}
	for _, test := range tests {
		if got := approval.Text(with(test.arguments)); !strings.Contains(got, test.want) {
			t.Errorf("%s: got\n%s, want %s", test.arguments, got, test.want)
		}
	}
}

// list returns a JSON list of n items, with one that should be visible at index at.
func list(n, at int) string {
	items := make([]string, n)
	for i := range items {
		items[i] = fmt.Sprintf(`{"id":%d,"name":"item %d"}`, i, i)
	}
	items[at] = `{"id":-1,"name":"DELETE EVERYTHING"}`
	return "[" + strings.Join(items, ",") + "]"
}

// A question of any size is sent to a host in a form that fits and lists what it omits. The whole
// is complete.
func TestLargeQuestionsFit(t *testing.T) {
	long := strings.Repeat("y", 100_000)
	tests := map[string]string{
		"60,000 items":    `{"items":` + list(60_000, 30_000) + `}`,
		"a long text":     `{"text":"` + long + `"}`,
		"many long texts": `{"texts":[` + strings.Repeat(`"`+long[:5000]+`",`, 99) + `"x"]}`,
		"60,000 members": `{` + strings.TrimSuffix(strings.Join(func() (all []string) {
			for i := range 60_000 {
				all = append(all, fmt.Sprintf(`"m%d":%d`, i, i))
			}
			return
		}(), ","), ",") + `}`,
		"deep":               strings.Repeat(`{"a":[`, 2000) + `1` + strings.Repeat(`]}`, 2000),
		"wide and deep":      `{"a":[` + strings.Repeat(`[[[["x","y"],["z"]]]],`, 5000) + `[]]}`,
		"long names":         `{"` + long[:20_000] + `":1,"b":"` + long[:20_000] + `"}`,
		"a lone long number": `{"n":1` + strings.Repeat("0", 30_000) + `}`,
		"escapes":            `{"t":"` + strings.Repeat(`\u202e`, 20_000) + `"}`,
	}
	for name, arguments := range tests {
		for _, most := range []int{8 << 10, 16 << 10} {
			t.Run(fmt.Sprintf("%s in %d", name, most), func(t *testing.T) {
				q := with(arguments)
				q.Code = strings.Repeat("# delete_file "+long[:200]+"\n", 2000)
				q.CodeHash = canon.Digest([]byte(q.Code))
				q.Flags = strings.Split(strings.Repeat("inputSchema: 2 characters cannot be seen|", 3000), "|")
				text := approval.Excerpt(q, most)
				if len(text) > most {
					t.Errorf("got %d bytes, want at most %d", len(text), most)
				}
				for _, want := range []string{
					"SHORTENED", canon.Digest(q.Arguments), "airlock approvals show " + q.ID, "delete_file",
					"destructive", "files",
				} {
					if !strings.Contains(text, want) {
						t.Errorf("got no %q in\n%.3000s", want, text)
					}
				}
			})
		}
	}
	whole := approval.Text(with(tests["60,000 items"]))
	if !strings.Contains(whole, "DELETE EVERYTHING") || !strings.Contains(whole, "60,000 items") ||
		strings.Contains(whole, "SHORTENED") {
		t.Error("the whole question is not whole")
	}
	if short := approval.Excerpt(with(tests["60,000 items"]), 16<<10); !strings.Contains(short, "of 60,000") {
		t.Errorf("the excerpt does not say how many items there are:\n%.2000s", short)
	}
	q := question()
	if approval.Excerpt(q, 16<<10) != approval.Text(q) {
		t.Error("what fits is shortened")
	}
}

// The line claimed by the client is marked and shown, however many other lines name the tool.
func TestTheCallingLineIsMarked(t *testing.T) {
	decoys := strings.Repeat("# delete_file({'path': '/tmp/harmless'})\n", 300)
	tests := []struct {
		name, code string
		line       int
		want       []string
		not        []string
	}{
		{"alone", "x = 1\nawait files.delete_file({})\n", 2,
			[]string{">    2 await files.delete_file({})", "as the code's own client says"}, nil},
		{"after decoys", decoys + "await f(g)\n" + decoys, 301, []string{">  301 await f(g)", "does not name the tool"},
			nil},
		{"before decoys", "await f(g)\n" + decoys, 1, []string{">    1 await f(g)"}, nil},
		{"a built name", "t = 'delete' + '_file'\n" + strings.Repeat("\n", 500) + "await call_tool('files', t, a)\n",
			502, []string{">  502 await call_tool('files', t, a)"}, nil},
		{"no claim", "await files.delete_file({})\n", 0,
			[]string{"which line makes the call is not known", "     1 await files.delete_file({})"},
			[]string{">    "}},
		{"a claim beyond the code", "await files.delete_file({})\n", 99, []string{"is not known"}, []string{">    "}},
		{"a negative claim", "await files.delete_file({})\n", -1, []string{"is not known"}, []string{">    "}},
		{"a very long line", "x=[" + strings.Repeat("1,", 5000) + "];files.delete_file(x)\n", 1,
			[]string{">    1 x=[1,1", "from character", "files.delete_file(x)"}, nil},
		{"behind spaces", strings.Repeat(" ", 400) + "files.delete_file(x)\n", 1,
			[]string{`>    1 \u{20}×400 files.delete_file(x)`}, nil},
		{"behind a carriage return", "safe()\rfiles.delete_file(x)\n", 1,
			[]string{`>    1 safe()\rfiles.delete_file(x)`}, nil},
		{"with bidi", "files.delete_file(\u202e'x')\n", 1, []string{`\u{202e}`}, []string{"\u202e"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			q := question()
			q.Code, q.CodeHash, q.ClaimedLine = test.code, canon.Digest([]byte(test.code)), test.line
			got := approval.Text(q)
			for _, want := range test.want {
				if !strings.Contains(got, want) {
					t.Errorf("got\n%s\nwant %q", got, want)
				}
			}
			for _, not := range test.not {
				if strings.Contains(got, not) {
					t.Errorf("got\n%s\nwant no %q", got, not)
				}
			}
		})
	}
}

func FuzzQuestions(f *testing.F) {
	f.Add(`{"a":["x",{"b":"\u202e"}]}`, "delete\u200bfile", "x = 1\n", 1)
	f.Add(`{"a":"\ud83d"}`, "\xff", "\r\n", -3)
	f.Fuzz(func(t *testing.T, arguments, tool, code string, line int) {
		q := question()
		q.Arguments, q.ToolName, q.Code, q.ClaimedLine = json.RawMessage(arguments), tool, code, line
		q.CodeHash = canon.Digest([]byte(code))
		for _, text := range []string{approval.Text(q), approval.Excerpt(q, 8<<10)} {
			if strings.ContainsAny(text, "\r\x1b\x00\u202e\u200b\u2800") {
				t.Errorf("got %q", text)
			}
		}
	})
}
