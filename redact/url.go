package redact

import "bytes"

// maxUserPart is the maximum number of bytes that are read for the user part of a URL.
const maxUserPart = 1000

// urlPassword finds the password in a URL, scheme://user:password@host. RFC 3986 (section 3.2.1)
// does not allow @ : / ? # in it, but programs and people write them, so the password extends to
// the last @ that is followed by a host.
func urlPassword(text []byte, at, size int) (place, bool) {
	from := at + size
	end := from
	for end < len(text) && end-from < maxUserPart && bytes.IndexByte([]byte(" \t\r\n\"`<>"), text[end]) < 0 &&
		!isBreakAt(text, end) {
		end++
	}
	authority := text[from:end]
	if next := bytes.Index(authority, []byte("://")); next >= 0 { // another URL
		authority = authority[:next]
	}
	colon, first := bytes.IndexByte(authority, ':'), bytes.IndexAny(authority, "/?#@")
	if colon < 0 || first >= 0 && first < colon {
		return place{cost: len(authority)}, false
	}
	for rest := authority; ; {
		last := bytes.LastIndexByte(rest, '@')
		if last <= colon {
			return place{cost: len(authority)}, false
		}
		password := authority[colon+1 : last]
		if hostFollows.Match(authority[last:]) && isURLPassword(password) {
			return place{from + colon + 1, from + last, len(authority)}, !filler.Match(password) &&
				!comesHere.Match(password)
		}
		rest = authority[:last]
	}
}

var (
	// comesHere matches placeholders of documentation: my-password-goes-here.
	comesHere   = compile(`(?i)(?:goes|put|insert|is)?[_\-]here$`)
	hostFollows = compile(`^@[A-Za-z0-9\[][A-Za-z0-9.\-\[\]:]*(?:[/?#,;)\\]|$)`)
	// afterPort matches the text after the colon of a port. It is not a password.
	afterPort = compile(`^\d{1,5}[/?#]`)
)

func isURLPassword(b []byte) bool {
	return len(b) >= 3 && !afterPort.Match(b) && (isNoReference(b) || !template.Match(b) &&
		(!partly.Match(b) || isPasswordAround(b)) && !call.Match(b))
}

// isBreakAt reports whether there is an escaped line break or tab at text[at].
func isBreakAt(text []byte, at int) bool {
	return text[at] == '\\' && at+1 < len(text) && (text[at+1] == 'n' || text[at+1] == 'r' || text[at+1] == 't')
}
