package vfs

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Limits of paths.
const (
	maxPath  = 512 // bytes
	maxDepth = 16  // names
)

// A PathError describes an invalid path to its author.
type PathError struct{ Text string }

// Error returns the text.
func (e *PathError) Error() string { return e.Text }

func wrongPath(format string, args ...any) error { return &PathError{fmt.Sprintf(format, args...)} }

// CheckPath accepts the path of a file: names separated by slashes, of letters, digits and
// -_.~@+=,() and spaces, in the normal form of Unicode's compatibility normalization (UAX #15,
// NFKC). So no name is . or .., not even in look-alike characters. The error is a *PathError.
func CheckPath(path string) error {
	switch {
	case path == "":
		return wrongPath("the path is empty")
	case len(path) > maxPath:
		return wrongPath("the path is longer than %d bytes", maxPath)
	case !utf8.ValidString(path):
		return wrongPath("the path is not UTF-8")
	case strings.Count(path, "/") >= maxDepth:
		return wrongPath("the path has more than %d names", maxDepth)
	}
	for _, r := range path {
		if r != '/' && !inName(r) {
			return wrongPath("the path has the character %U: use letters, digits and -_.~@+=,() between slashes", r)
		}
	}
	if !norm.NFKC.IsNormalString(path) {
		return wrongPath("the path has characters that stand for others: write it in its normal form (NFKC)")
	}
	for name := range strings.SplitSeq(path, "/") {
		switch {
		case name == "":
			return wrongPath("the path begins or ends with a slash, or has two in a row")
		case strings.Trim(name, ". ") == "":
			return wrongPath("the path has a name of dots or spaces only")
		case strings.TrimSpace(name) != name:
			return wrongPath("a name in the path begins or ends with a space")
		}
	}
	return nil
}

func inName(r rune) bool {
	if r < utf8.RuneSelf {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' ||
			strings.ContainsRune("-_.~@+=,() ", r)
	}
	return unicode.IsLetter(r) || unicode.IsMark(r) || unicode.IsDigit(r)
}
