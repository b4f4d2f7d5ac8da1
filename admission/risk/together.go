package risk

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/airlock-mcp/airlock/internal/truncate"
	"github.com/airlock-mcp/airlock/policies"
)

// The names of members that together are a command, without separators: a program and its arguments,
// an operation and what it is done to.
var (
	programNames   = []string{"command", "cmd", "program", "executable", "exe", "binary", "entrypoint"}
	argumentNames  = []string{"args", "argv", "arguments", "params", "parameters", "options", "flags"}
	operationNames = []string{"operation", "op", "verb", "action", "command", "statement", "method", "type", "kind"}
	tableNames     = []string{"table", "tables", "tablename", "collection", "database", "schema", "keyspace",
		"relation", "dataset"}
)

// operations are the verbs of databases, and whether they remove an object.
var operations = map[string]bool{"delete": false, "update": false, "insert": false, "upsert": false, "merge": false,
	"replace": false, "alter": false, "create": false, "rename": false, "drop": true, "truncate": true}

// commands are members of commands to document databases, which occur together.
var commands = [][]string{{"delete", "deletes"}, {"update", "updates"}, {"insert", "documents"}, {"dropDatabase"},
	{"dropIndexes"}, {"findAndModify", "update"}, {"findAndModify", "remove"}, {"renameCollection", "to"}}

// operators are members that change documents or execute code in a document database.
var operators = []string{"$set", "$unset", "$inc", "$push", "$pull", "$pop", "$addToSet", "$rename", "$out", "$merge",
	"$where", "$function", "$accumulator"}

// together looks through members of an object that together are a text or a command.
func (c *content) together(path string, object map[string]any, l language, layer int) {
	if len(object) == 0 || c.isOver() {
		return
	}
	for _, names := range commands {
		if !slices.ContainsFunc(names, func(name string) bool { _, ok := object[name]; return !ok }) {
			c.add(policies.RiskCritical, path, "is a command to a database", "code")
		}
	}
	c.request(path, object)
	var numbered, arguments []string
	var program, operation string
	onTable := false
	for name, value := range object {
		if slices.Contains(operators, name) {
			c.add(policies.RiskHigh, path, "has an operator that changes documents", "code")
		}
		folded := strings.ToLower(separators.Replace(name))
		if _, err := strconv.Atoi(name); err == nil {
			numbered = append(numbered, name)
		}
		text, isText := value.(string)
		switch {
		case isText && slices.Contains(tableNames, folded):
			onTable = true
		case slices.Contains(argumentNames, folded):
			arguments = wordsOf(value, 1)
		}
		if isText && slices.Contains(programNames, folded) {
			program = text
		}
		first, _, _ := strings.Cut(strings.TrimSpace(text), " ")
		if slices.Contains(operationNames, folded) && isVerb(first) {
			operation = text
		}
	}
	if len(numbered) > 1 && len(numbered) == len(object) {
		slices.SortFunc(numbered, func(a, b string) int {
			return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
		})
		var list []any
		for _, name := range numbered {
			list = append(list, object[name])
		}
		c.joined(path, list, l, layer)
	}
	if program != "" && len(arguments) > 0 {
		c.encoded(path, program+" "+strings.Join(arguments, " "), l, layer)
	}
	if operation != "" {
		c.operation(path, object, operation, onTable, layer)
	}
}

// maxOperation bounds what is repeated for each other member.
const maxOperation = 100

func isVerb(word string) bool {
	_, ok := operations[strings.ToLower(word)]
	return ok
}

// operation judges an operation with the other members of its object.
func (c *content) operation(path string, object map[string]any, operation string, onTable bool, layer int) {
	first, _, _ := strings.Cut(strings.TrimSpace(operation), " ")
	start := truncate.Head(operation, maxOperation)
	switch {
	case onTable && operations[strings.ToLower(first)]:
		c.add(policies.RiskCritical, path, "is an operation that destroys something", "sql")
	case onTable:
		c.add(policies.RiskHigh, path, "is an operation that changes something", "sql")
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if c.isOver() {
			return
		}
		if text, ok := object[name].(string); ok && text != operation {
			c.encoded(path, start+" "+text, anything, layer)
		}
	}
}

// wordsOf returns the texts of a value: of a text itself, of the items of a list down to a number of
// levels, and of an object with a single text, such as a part of a message.
func wordsOf(value any, levels int) (words []string) {
	switch v := value.(type) {
	case string:
		return []string{v}
	case []any:
		if levels == 0 {
			return nil
		}
		for _, item := range v {
			words = append(words, wordsOf(item, levels-1)...)
		}
	case map[string]any:
		for _, member := range v {
			if text, ok := member.(string); ok {
				words = append(words, text)
			}
		}
		if len(words) != 1 {
			return nil
		}
	}
	return words
}
