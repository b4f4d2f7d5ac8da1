package config

import (
	"fmt"
	"strings"
)

// Error is a mistake in a configuration file.
type Error struct {
	File    string // as the caller named it; may be empty
	Line    int    // from 1; 0 if there is no position
	Column  int    // from 1, in characters; 0 when unknown
	Message string // one sentence, without a full stop
	Advice  string // what to type instead; may be empty
}

// Error returns "airlock.yaml:12:3: message".
func (e *Error) Error() string { return place(e.File, e.Line, e.Column) + e.Message }

// Hint returns what to type instead, or "".
func (e *Error) Hint() string { return e.Advice }

// place returns "file:line:column: ", without the parts that are unknown.
func place(file string, line, column int) string {
	var b strings.Builder
	if file != "" {
		b.WriteString(file + ":")
	}
	if line > 0 {
		fmt.Fprintf(&b, "%d:", line)
		if column > 0 {
			fmt.Fprintf(&b, "%d:", column)
		}
	}
	if b.Len() > 0 {
		b.WriteByte(' ')
	}
	return b.String()
}
