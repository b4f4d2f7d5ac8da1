package config

import (
	"fmt"
	"strings"

	"github.com/airlock-mcp/airlock/internal/secret"
)

// expand replaces ${NAME} by the variable's value, and ${NAME:-default} by the default if the
// variable is unset or empty, as a POSIX shell does (POSIX.1-2024, section 2.6.2). $${ is a
// literal ${; every other $ is literal, so that a host's file keeps its meaning. Values are
// not expanded again. The error completes "mcpServers.x.env.TOKEN …".
func (d *decoder) expand(text string) (string, error) {
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(text, "${")
		out.WriteString(before)
		if !found {
			return out.String(), nil
		}
		if strings.HasSuffix(before, "$") { // the $ before it is already written
			out.WriteString("{")
			text = rest
			continue
		}
		name, after, closed := strings.Cut(rest, "}")
		if !closed {
			return "", fmt.Errorf("has a ${ without its }")
		}
		value, err := d.variable(name)
		if err != nil {
			return "", err
		}
		out.WriteString(value)
		text = after
	}
}

// variable returns the value of ${expr}.
func (d *decoder) variable(expr string) (string, error) {
	name, fallback, hasDefault := strings.Cut(expr, ":-")
	name = strings.TrimPrefix(name, "env:") // Cursor and VS Code write ${env:NAME}
	if value, ok := d.hostVariable(name); ok {
		return value, nil
	}
	if input, ok := strings.CutPrefix(name, "input:"); ok {
		return "", &adviceError{fmt.Sprintf("asks for the input %q, which only VS Code can ask for", input),
			"put the value into an environment variable and write ${NAME}"}
	}
	if !isVariableName(name) {
		return "", &adviceError{fmt.Sprintf("has ${%s}, which is not the name of a variable", expr),
			"write $${ for a literal ${"}
	}
	value, ok := d.env(name)
	switch {
	case value != "":
		if NamesCredential(name) {
			d.credentials = append(d.credentials, Variable{name, secret.New(value)})
		}
		return value, nil
	case hasDefault:
		return fallback, nil
	case !ok:
		return "", &adviceError{fmt.Sprintf("needs the environment variable %s, which is not set", name),
			fmt.Sprintf("set %s, or give a default: ${%s:-value}", name, name)}
	}
	return "", nil
}

// hostVariable returns the value of a predefined variable of Cursor and VS Code.
func (d *decoder) hostVariable(name string) (string, bool) {
	switch name {
	case "userHome":
		return d.env("HOME")
	case "workspaceFolder":
		return d.workspace(), true
	}
	return "", false
}

// isVariableName reports whether name is a valid name of an environment variable
// (POSIX.1-2024, section 8.1, but lower case is allowed, too).
func isVariableName(name string) bool {
	for i, r := range name {
		letter := r == '_' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
		if !letter && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return name != ""
}

// adviceError is an error with advice.
type adviceError struct{ message, advice string }

func (e *adviceError) Error() string { return e.message }
