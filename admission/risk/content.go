package risk

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/airlock-mcp/airlock/internal/sqltext"
	"github.com/airlock-mcp/airlock/internal/truncate"
	"github.com/airlock-mcp/airlock/policies"
)

// The bounds of what is looked through in one act, beside its own size.
const (
	maxLayers  = 6        // encodings inside each other
	workFactor = 24       // bytes looked through for each byte of the arguments
	minWork    = 64 << 10 // for small arguments
	maxPath    = 200      // bytes of the description of a place
)

// finding is the worst that was found in the arguments.
type finding struct {
	risk   policies.Risk
	what   string
	engine string
}

// language is what the receiver of a text executes it as.
type language int

const (
	anything language = iota
	sqlText
	shellText
	codeText
)

// hints are derived from the names and schemas of a value.
type hints struct {
	schemas  []map[string]any
	sql      []string // members that contain SQL
	language language
}

// content looks for SQL, shell commands and code in arguments. It stops when nothing worse can be found.
type content struct {
	ended   func() error // the context's error
	meaning Meaning
	named   bool
	found   finding
	work    int // number of bytes that may still be inspected
}

func newContent(ctx context.Context, meaning Meaning, named bool) *content {
	return &content{ended: ctx.Err, meaning: meaning, named: named, found: finding{risk: policies.RiskLow},
		work: minWork}
}

func (c *content) add(risk policies.Risk, path, what, engine string) {
	if risk > c.found.risk {
		c.found = finding{risk, truncate.Head(path, maxPath) + " " + what, engine}
	}
}

func (c *content) isOver() bool { return c.found.risk == policies.RiskCritical || c.ended() != nil }

// value looks through a decoded JSON value. Layer counts the encodings around it.
func (c *content) value(path string, value any, h hints, layer int) {
	if c.isOver() {
		return
	}
	switch v := value.(type) {
	case string:
		if layer == 0 {
			c.work += workFactor * len(v)
		}
		c.text(path, v, h.language, layer)
	case []any:
		items := h.items()
		for _, item := range v {
			c.value(path, item, items, layer)
		}
		c.joined(path, v, items.language, layer)
	case map[string]any:
		c.together(path, v, h.language, layer)
		for name, member := range v {
			if layer == 0 {
				c.work += workFactor * len(name)
			}
			c.text(path, name, anything, layer)
			c.value(within(path, name), member, c.member(h, name), layer)
		}
	}
}

// within names a member of an object.
func within(path, name string) string {
	if len(path) > maxPath {
		return path
	}
	return path + "." + truncate.Head(name, maxPath)
}

// joined looks through a list whose items together are a text: words, or the numbers of characters.
func (c *content) joined(path string, list []any, l language, layer int) {
	if len(list) < 2 || c.isOver() {
		return
	}
	var words []string
	var characters strings.Builder
	for _, item := range list {
		words = append(words, wordsOf(item, 1)...)
		if number, ok := item.(fmt.Stringer); ok { // json.Number
			if r, ok := character(number.String()); ok {
				characters.WriteRune(r)
			}
		}
	}
	if len(words) > 1 {
		c.encoded(path, strings.Join(words, " "), l, layer)
		c.encoded(path, strings.Join(words, ""), l, layer)
	}
	if characters.Len() > 1 {
		if layer == 0 {
			c.work += workFactor * characters.Len()
		}
		c.encoded(path, characters.String(), l, layer)
	}
}

// encoded looks through what another text or list is an encoding of.
func (c *content) encoded(path, text string, l language, layer int) {
	if layer == maxLayers {
		c.add(policies.RiskCritical, path, "has more encodings inside each other than are looked through", "")
		return
	}
	c.text(path, text, l, layer+1)
}

// text judges a text, and everything that it is an encoding of.
func (c *content) text(path, text string, l language, layer int) {
	if c.isOver() || text == "" {
		return
	}
	if c.work -= len(text); c.work < 0 {
		c.add(policies.RiskCritical, path, "has more in it than can be looked through", "")
		return
	}
	c.requests(path, text, layer == 0)
	for _, reading := range readings(text) {
		c.judge(path, reading, l)
	}
	decodings(text, func(decoded string) {
		if decoded != text && !c.isOver() {
			c.encoded(path, decoded, l, layer)
		}
	})
	if value, ok := nested(text); ok && !c.isOver() {
		c.value(path, value, hints{language: l}, layer+1)
	}
}

// judge judges one text as it is.
func (c *content) judge(path, text string, l language) {
	if l == sqlText && strings.TrimSpace(text) != "" {
		switch sqltext.Judge(text).Effect {
		case sqltext.Read:
		case sqltext.Write:
			c.add(policies.RiskHigh, path, "is SQL that changes something", "sql")
		default:
			c.add(policies.RiskCritical, path, "is SQL that destroys something, or that no database reads", "sql")
		}
	}
	switch {
	case l == shellText:
		c.add(policies.RiskCritical, path, "is a shell command", "code")
	case l == codeText && isProgram(text):
		c.add(policies.RiskCritical, path, "is code", "code")
	}
	lower := strings.ToLower(text)
	switch effectOfSQL(text) {
	case sqltext.Read:
	case sqltext.Write:
		c.add(policies.RiskHigh, path, "is SQL that changes something", "sql")
	default:
		c.add(policies.RiskCritical, path, "is SQL that destroys something", "sql")
	}
	switch {
	case isShell(text, lower):
		c.add(policies.RiskCritical, path, "is a shell command with effects", "code")
	case isCode(text, lower):
		c.add(policies.RiskCritical, path, "is code with effects", "code")
	}
}

// isProgram reports whether a text that is called code is a program, and not an identifier such as a country's.
func isProgram(text string) bool {
	return strings.ContainsFunc(strings.TrimSpace(text), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' && r != '-' && r != '.'
	})
}

// The names of members whose text is executed.
var (
	sqlNames   = []string{"sql", "sqlquery", "rawsql", "sqlstatement", "sqltext", "querysql"}
	queryNames = []string{"query", "sql", "statement"} // of actions that are SQL by their names
	shellNames = []string{"shell", "bash", "powershell", "shellcommand", "bashcommand", "commandline", "cmdline",
		"shellscript"}
	codeNames = []string{"code", "script", "sourcecode", "pythoncode", "jscode", "javascript", "program"}
)

// separators are what the names of members are compared without.
var separators = strings.NewReplacer("_", "", "-", "", " ", "")

// member returns the hints for a member of an object.
func (c *content) member(h hints, name string) hints {
	of := hints{language: h.language}
	folded := strings.ToLower(separators.Replace(name))
	switch {
	case slices.Contains(h.sql, name), slices.Contains(sqlNames, folded),
		c.meaning.SQL && slices.Contains(queryNames, folded):
		of.language = sqlText
	case c.named: // a known action type or tool has a defined use for code
	case slices.Contains(shellNames, folded):
		of.language = shellText
	case slices.Contains(codeNames, folded):
		of.language = codeText
	}
	for _, schema := range h.schemas {
		properties, _ := schema["properties"].(map[string]any)
		if property, ok := properties[name].(map[string]any); ok {
			of.schemas = append(of.schemas, property)
			of.language = max(of.language, languageOf(property))
		}
	}
	return of
}

// items returns the hints for the items of a list.
func (h hints) items() hints {
	of := hints{language: h.language}
	for _, schema := range h.schemas {
		if items, ok := schema["items"].(map[string]any); ok {
			of.schemas = append(of.schemas, items)
			of.language = max(of.language, languageOf(items))
		}
	}
	return of
}

// languageOf returns the language that a schema gives for a text.
func languageOf(schema map[string]any) language {
	for _, key := range []string{"contentMediaType", "format"} {
		word, _ := schema[key].(string)
		word = strings.ToLower(word)
		switch {
		case strings.Contains(word, "sql"):
			return sqlText
		case strings.Contains(word, "shell"), strings.Contains(word, "x-sh"):
			return shellText
		case strings.Contains(word, "python"), strings.Contains(word, "javascript"),
			strings.Contains(word, "ecmascript"):
			return codeText
		}
	}
	for _, key := range []string{"title", "description"} {
		if text, _ := schema[key].(string); mentionsSQL.MatchString(text) {
			return sqlText
		}
	}
	return anything
}
