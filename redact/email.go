package redact

import (
	"bytes"
	"slices"
	"strings"
)

// The maximum lengths of the parts of an e-mail address (RFC 5321, section 4.5.3.1).
const (
	maxLocalPart = 64
	maxDomain    = 255
)

// findEmails finds e-mail addresses around every @.
func findEmails(text []byte) []span {
	var spans []span
	for at := 0; ; at++ {
		i := bytes.IndexByte(text[at:], '@')
		if i < 0 {
			return spans
		}
		at += i
		start, stop := at, at+1
		for start > 0 && at-start < maxLocalPart && isLocalByte(text[start-1]) {
			start--
		}
		start = afterEscapes(text, start, at)
		for start < at && !isAlnum(text[start]) {
			start++
		}
		for stop < len(text) && stop-at <= maxDomain && isDomainByte(text[stop]) {
			stop++
		}
		for stop > at && !isLetter(text[stop-1]) {
			stop--
		}
		if start < at && stop > at && !inAddress(text, start) && isEmail(text[start:stop]) {
			spans = append(spans, span{start: start, end: stop, kind: "email"})
		}
	}
}

// afterEscapes returns start, or the position after the last escape sequence between start and at
// that ends with a letter or digit.
func afterEscapes(text []byte, start, at int) int {
	for i := at; i > start; i-- {
		if isAlnum(text[i-1]) && escapeBefore(text, i) > 0 {
			return i
		}
	}
	return start
}

// inAddress reports whether text[start] is in the user part of a URL. The @ after it is not that of
// an e-mail address.
func inAddress(text []byte, start int) bool {
	before := text[max(0, start-200):start]
	if i := bytes.LastIndexAny(before, " \t\r\n\"'<>()"); i >= 0 {
		before = before[i+1:]
	}
	i := bytes.LastIndex(before, []byte("://"))
	return i >= 0 && bytes.IndexByte(before[i+3:], '/') < 0 && bytes.IndexByte(before[i+3:], '?') < 0
}

func isLocalByte(c byte) bool  { return isAlnum(c) || bytes.IndexByte([]byte("._%+-'"), c) >= 0 }
func isDomainByte(c byte) bool { return isAlnum(c) || c == '.' || c == '-' }
func isLetter(c byte) bool     { return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' }
func isDigit(c byte) bool      { return '0' <= c && c <= '9' }
func isAlnum(c byte) bool      { return isDigit(c) || isLetter(c) }

// isEmail reports whether b is an e-mail address. The example domains of RFC 2606 and file names
// such as icon@2x.png are not.
func isEmail(b []byte) bool {
	address := strings.ToLower(string(b))
	local, domain, _ := strings.Cut(address, "@")
	if local == "git" || local == "hg" { // a repository: git@host:owner/name
		return false
	}
	dot := strings.LastIndexByte(domain, '.')
	if dot < 1 || len(domain)-dot < 3 || strings.Contains(domain, "..") || strings.Contains(domain[dot:], "-") {
		return false
	}
	for _, reserved := range []string{"example.com", "example.org", "example.net"} {
		if domain == reserved || strings.HasSuffix(domain, "."+reserved) {
			return false
		}
	}
	return !slices.Contains(notTopLevel, domain[dot+1:])
}

// notTopLevel are the last parts of names that are not top-level domains: reserved ones (RFC 2606),
// extensions of files, and types of systemd units.
var notTopLevel = []string{
	"example", "invalid", "test", "localhost",
	"png", "jpg", "jpeg", "gif", "svg", "webp", "ico", "js", "mjs", "cjs", "ts", "tsx", "jsx", "css", "scss", "html",
	"json", "yml", "yaml", "xml",
	"txt", "log", "lock", "tar", "gz", "tgz", "exe", "dll", "jar", "whl", "rb", "go", "rs", "java", "php",
	"service", "slice", "scope", "socket", "target", "mount", "timer", "conf",
}
