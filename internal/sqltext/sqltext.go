// Package sqltext tells by its words what SQL does, whatever dialect it is in:
// a text that one database would read and another would write counts as a write.
package sqltext

import (
	"slices"
	"strings"
)

// Effect is what SQL does at worst.
type Effect int

// The effects, from the least.
const (
	Read    Effect = iota
	Write          // changes data or state, or holds a connection or a lock on purpose
	Destroy        // removes tables, columns, accounts, or the rows of a whole table
	Unclear        // no dialect reads it: a quote or a comment has no end, or there is no statement
)

// String returns the effect as a word.
func (e Effect) String() string {
	return [...]string{"read", "write", "destroy", "unclear"}[e]
}

// Classify returns what the statements of a text do at worst.
func Classify(sql string) Effect {
	worst, readable := Read, false
	for _, d := range dialects {
		statements, ok := split(sql, d)
		if !ok || len(statements) == 0 {
			continue // that database would refuse the text
		}
		readable = true
		for _, s := range statements {
			worst = max(worst, s.effect())
		}
	}
	if !readable {
		return Unclear
	}
	return worst
}

// Destroys says whether a text that may be anything has a statement that removes
// a database, a table or the like, such as DROP TABLE.
// Of a fragment whose quotes do not close, the quotes are left out.
func Destroys(text string) bool {
	closed := false
	for _, d := range dialects {
		statements, ok := split(text, d)
		closed = closed || ok
		if ok && slices.ContainsFunc(statements, statement.drops) {
			return true
		}
	}
	if closed {
		return false
	}
	statements, _ := split(strings.NewReplacer("'", " ", `"`, " ", "`", " ", "/*", " ").Replace(text), dialects[0])
	return slices.ContainsFunc(statements, statement.drops)
}

// statement is the words and signs of one statement, in lower case.
type statement []token

type token struct {
	text   string
	quoted bool // a string or a quoted name, whose text does not count
}

// words are those that are not quoted.
func (s statement) has(words ...string) bool {
	return slices.ContainsFunc(s, func(t token) bool { return !t.quoted && slices.Contains(words, t.text) })
}

// first returns the first word, behind parentheses.
func (s statement) first() string {
	for _, t := range s {
		if t.text != "(" || t.quoted {
			return t.text
		}
	}
	return ""
}

var (
	reading   = []string{"select", "with", "values", "table", "show", "describe", "desc", "explain"}
	objects   = []string{"table", "database", "schema", "index", "view", "column", "user", "role", "function", "procedure", "trigger", "sequence", "type", "tablespace", "extension", "materialized", "temporary", "constraint", "policy", "domain", "keyspace", "collection"}
	changing  = []string{"insert", "update", "delete", "merge", "upsert", "create", "alter", "drop", "truncate", "grant", "revoke", "into", "outfile", "dumpfile", "lock", "call", "exec", "execute", "copy", "attach", "detach", "vacuum", "reindex", "set", "pragma", "do", "load", "replace"}
	functions = []string{"sleep", "benchmark", "setval", "nextval", "load_file", "load_extension", "query_to_xml", "txid_current", "waitfor", "shell", "system", "eval"}
	prefixes  = []string{"pg_", "lo_", "dblink", "xp_", "sp_", "sys_", "dbms_", "utl_", "set_", "fts3_", "writefile", "readfile", "edit"}
)

// harmless are functions and tables of a prefix above that only read.
var harmless = []string{"pg_typeof", "pg_catalog", "pg_tables", "pg_indexes", "pg_views", "pg_class", "pg_namespace", "pg_attribute", "pg_type", "pg_size_pretty", "pg_relation_size", "pg_total_relation_size", "pg_table_size", "pg_database_size", "pg_stat_user_tables", "pg_stat_activity"}

func (s statement) effect() Effect {
	first := s.first()
	switch {
	case first == "":
		return Read
	case s.drops() || first == "truncate" || first == "drop":
		return Destroy
	case first == "explain" && !s.has("analyze", "analyse"):
		return Read
	case s.everyRow():
		return Destroy
	case !slices.Contains(reading, first) || s.changes() || s.calls():
		return Write
	}
	return Read
}

// drops says whether something is dropped by its kind: DROP TABLE, ALTER … DROP COLUMN.
func (s statement) drops() bool {
	for i, t := range s[:max(0, len(s)-1)] {
		if t.quoted || t.text != "drop" && t.text != "truncate" {
			continue
		}
		if i > 0 && s.first() != "alter" && s.first() != t.text && s.first() != "explain" {
			continue
		}
		if next := s[i+1]; !next.quoted && slices.Contains(objects, next.text) {
			return true
		}
	}
	return false
}

// everyRow says whether rows are deleted or changed without a condition.
func (s statement) everyRow() bool {
	isVerb := func(i int) bool {
		return !s[i].quoted && (s[i].text == "delete" || s[i].text == "update") && (i == 0 || s[i-1].text != ".")
	}
	verb := false
	for i := range s {
		verb = verb || isVerb(i)
	}
	return verb && !s.has("where", "limit", "for", "conflict", "duplicate") && (s.has("from") || s.has("set"))
}

// changes says whether a word that changes something stands where a name cannot.
func (s statement) changes() bool {
	for i, t := range s {
		if t.quoted || !slices.Contains(changing, t.text) {
			continue
		}
		isFunction := i+1 < len(s) && s[i+1].text == "(" && !s[i+1].quoted
		isMember := i > 0 && s[i-1].text == "."
		if isMember || isFunction && (t.text == "replace" || t.text == "insert") {
			continue
		}
		return true
	}
	return false
}

// calls says whether a function is called that does more than compute.
func (s statement) calls() bool {
	return slices.ContainsFunc(s, func(t token) bool {
		name := t.text
		if slices.Contains(harmless, name) {
			return false
		}
		if slices.Contains(functions, name) {
			return true
		}
		return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(name, p) })
	})
}
