package redact

import "bytes"

// maxUserPart is the most bytes that are read for the user part of an address.
const maxUserPart = 1000

// urlPassword finds the password in an address, scheme://user:password@host. By
// RFC 3986 (section 3.2.1) it has no @ : / ? # in it, but programs and people
// write them: it goes to the last @ that a host follows.
func urlPassword(text []byte, at, size int) (place, bool) {
	from := at + size
	end := from
	for end < len(text) && end-from < maxUserPart && bytes.IndexByte([]byte(" \t\r\n\"`<>"), text[end]) < 0 && !isBreakAt(text, end) {
		end++
	}
	authority := text[from:end]
	if next := bytes.Index(authority, []byte("://")); next >= 0 { // of another address
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
			return place{from + colon + 1, from + last, len(authority)}, !filler.Match(password) && !comesHere.Match(password)
		}
		rest = authority[:last]
	}
}

var (
	// comesHere is what documentation writes: my-password-goes-here.
	comesHere   = compile(`(?i)(?:goes|put|insert|is)?[_\-]here$`)
	hostFollows = compile(`^@[A-Za-z0-9\[][A-Za-z0-9.\-\[\]:]*(?:[/?#,;)\\]|$)`)
	// afterPort is what follows the number of a port: there is no password then.
	afterPort = compile(`^\d{1,5}[/?#]`)
)

func isURLPassword(b []byte) bool {
	return len(b) >= 3 && !afterPort.Match(b) && !template.Match(b) && !partly.Match(b) && !call.Match(b)
}

// isBreakAt says whether an escaped line break or tab stands at a place.
func isBreakAt(text []byte, at int) bool {
	return text[at] == '\\' && at+1 < len(text) && (text[at+1] == 'n' || text[at+1] == 'r' || text[at+1] == 't')
}
