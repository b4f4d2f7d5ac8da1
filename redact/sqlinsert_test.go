package redact_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/redact"
)

// The values that an INSERT puts into a password column are removed in each row, whatever the
// position of the column. The other columns are left.
func TestInsertedValues(t *testing.T) {
	others := []string{"id", "name", "note"}
	values := []string{"17", "'bob'", "'it''s (fine), really'"}
	for _, name := range []string{"password", "PASSWORD", "`password`", `"user_password"`, "[password]", "api_token"} {
		for place := range len(others) + 1 {
			columns := append(append(append([]string{}, others[:place]...), name), others[place:]...)
			row := func(secret string) string {
				return "(" + strings.Join(append(append(append([]string{}, values[:place]...), "'"+secret+"'"),
					values[place:]...), ", ") + ")"
			}
			text := fmt.Sprintf("insert INTO app.users (%s)\nVALUES %s,\n  %s;", strings.Join(columns, ", "),
				row("hunter22x9"), row("Tr0ub4dor''s"))
			cleaned, findings := redact.New().Bytes([]byte(text))
			if got := string(cleaned); strings.Contains(got, "hunter22x9") || strings.Contains(got, "Tr0ub4dor") {
				t.Errorf("%s: got %s", text, got)
			}
			if n := redact.Counts(findings); n["password"]+n["secret"] != 2 {
				t.Errorf("%s: got %v, want two values removed", text, n)
			}
			if strings.Count(string(cleaned), "'bob'") != 2 ||
				strings.Count(string(cleaned), "'it''s (fine), really'") != 2 {
				t.Errorf("%s: got %s, want the other columns as they were", text, cleaned)
			}
		}
	}
	for _, text := range []string{
		"INSERT INTO t (name, password) VALUES ($1, $2)", "INSERT INTO t (name, password) VALUES (?, ?)",
		"INSERT INTO t (name, password) VALUES ('bob', :password)", "insert into the (password) values of others",
		"INSERT INTO t (password) VALUES (",
	} {
		if cleaned, _ := redact.New().Bytes([]byte(text)); string(cleaned) != text {
			t.Errorf("%s: got %s, want it to stay", text, cleaned)
		}
	}
}
