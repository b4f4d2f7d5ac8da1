package redact

import "bytes"

// cookieHeader finds what a header Cookie or Set-Cookie carries (RFC 6265,
// section 4), if any of its cookies has a value that looks drawn: the whole list
// goes, because each may be what a session hangs on.
func cookieHeader(text []byte, at, size int) (place, bool) {
	m := cookieStart.FindIndex(text[at+size : min(len(text), at+size+24)])
	if m == nil {
		return place{}, false
	}
	start := at + size + m[1]
	end := start
	for end < len(text) && end-start < 4096 && bytes.IndexByte([]byte("\r\n\"'`\\<>"), text[end]) < 0 {
		end++
	}
	return place{start, end, end - start}, hasCookie(text[start:end])
}

// hasCookie says whether there is a cookie in a list that a session may hang on.
func hasCookie(list []byte) bool {
	for part := range bytes.SplitSeq(list, []byte(";")) {
		name, value, isPair := bytes.Cut(bytes.TrimSpace(part), []byte("="))
		if isPair && cookieName.Match(name) && isCookie(name, value) {
			return true
		}
	}
	return false
}

// cookieMember is the name of a member that holds such a list.
var cookieMember = compile(`(?i)^(?:set-)?cookies?$`)

var (
	cookieStart = compile(`\A["']?(?:: ?|["']?, ?(?:["'][vV]alue["']: ?)?)["']?`)
	cookieName  = compile(`^[A-Za-z0-9_.\-]{1,60}$`)
)

// isCookie says whether a value may be what a session hangs on: under a name that
// says so, little is asked of it.
func isCookie(name, value []byte) bool {
	if sessionName.Match(name) {
		return len(value) >= 6 && hasDigit(value) && notPlaceholder(value) && notDummy(value)
	}
	return isDrawn(value) && !isCounted(value)
}

var sessionName = compile(`(?i)(?:^|[_.\-])(?:sid|session|sessionid|jsessionid|phpsessid|auth|jwt|token|access_?token|connect\.sid)(?:_?id)?$|sessi?on[_\-]?id|sessid`)
