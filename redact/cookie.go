package redact

import "bytes"

// cookieHeader finds the value of a Cookie or Set-Cookie header (RFC 6265, section 4), if the value
// of any of its cookies looks random. It returns the whole list, because each cookie may identify
// the session.
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

// hasCookie reports whether a list contains a cookie that may identify a session.
func hasCookie(list []byte) bool {
	for part := range bytes.SplitSeq(list, []byte(";")) {
		name, value, isPair := bytes.Cut(bytes.TrimSpace(part), []byte("="))
		if isPair && cookieName.Match(name) && isCookie(name, value) {
			return true
		}
	}
	return false
}

// cookieMember matches names of members that hold such a list.
var cookieMember = compile(`(?i)^(?:set-)?cookies?$`)

var (
	cookieStart = compile(`\A["']?(?:: ?|["']?, ?(?:["'][vV]alue["']: ?)?)["']?`)
	cookieName  = compile(`^[A-Za-z0-9_.\-]{1,60}$`)
)

// isCookie reports whether a cookie may identify a session. If its name is that of a session, the
// conditions for its value are weak.
func isCookie(name, value []byte) bool {
	if sessionName.Match(name) {
		return len(value) >= 6 && hasDigit(value) && notPlaceholder(value) && notDummy(value)
	}
	return isDrawn(value) && !isCounted(value)
}

var sessionName = compile(
	`(?i)(?:^|[_.\-])(?:sid|session|sessionid|jsessionid|phpsessid|auth|jwt|token|access_?token|` +
		`connect\.sid)(?:_?id)?$|sessi?on[_\-]?id|sessid`)
