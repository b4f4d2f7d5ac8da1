package visible

import "strings"

// Word writes a text as one word of a shell command that a person may copy. Characters that leave no mark are written
// as in Line, so a name with one of them cannot be copied, but it cannot hide a command either.
func Word(s string) string {
	s = Line(s)
	if s != "" && strings.IndexFunc(s, special) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// special reports whether a character needs quotes in a shell.
func special(r rune) bool {
	switch {
	case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9':
		return false
	}
	return !strings.ContainsRune("_./:=@%+,-", r)
}
