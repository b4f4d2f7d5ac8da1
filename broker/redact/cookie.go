package redact

import "bytes"

// cookieHeader finds what a header Cookie or Set-Cookie carries (RFC 6265,
// section 4), if any of its cookies has a value that looks drawn: the whole list
// goes, because each may be what a session hangs on.
func cookieHeader(text []byte, at, size int) (place, bool) {
	m := cookieStart.FindIndex(text[at+size : min(len(text), at+size+12)])
	if m == nil {
		return place{}, false
	}
	start := at + size + m[1]
	end := start
	for end < len(text) && end-start < 4096 && bytes.IndexByte([]byte("\r\n\"'`\\<>"), text[end]) < 0 {
		end++
	}
	for part := range bytes.SplitSeq(text[start:end], []byte(";")) {
		name, value, isPair := bytes.Cut(bytes.TrimSpace(part), []byte("="))
		if isPair && cookieName.Match(name) && isCookie(name, value) {
			return place{start, end, end - start}, true
		}
	}
	return place{}, false
}

var (
	cookieStart = compile(`\A["']?(?:: ?|["']?, ?)["']?`)
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
