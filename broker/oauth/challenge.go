package oauth

import (
	"net/http"
	"strings"
)

// Challenge is what a server demanded when it refused a request (RFC 6750, section 3;
// RFC 9728, section 5.1; RFC 9449, section 9). All texts come from the server.
type Challenge struct {
	Scheme   string // bearer or dpop; empty if the server named no known scheme
	Metadata string // the URL of the protected resource's metadata
	Scopes   []string
	Error    string
}

// maxChallenge bounds the headers that are read, in bytes.
const maxChallenge = 16 << 10

// challengeOf reads the first challenge with a known scheme.
func challengeOf(header http.Header) Challenge {
	text := strings.Join(header.Values("WWW-Authenticate"), ", ")
	if len(text) > maxChallenge {
		return Challenge{}
	}
	for _, c := range parseChallenges(text) {
		if c.scheme == "bearer" || c.scheme == "dpop" {
			return Challenge{Scheme: c.scheme, Metadata: c.params["resource_metadata"],
				Scopes: scopesOf(c.params["scope"]), Error: c.params["error"]}
		}
	}
	return Challenge{}
}

type rawChallenge struct {
	scheme string            // in lower case
	params map[string]string // names in lower case; the first value of each
}

// parseChallenges reads a list of challenges (RFC 9110, section 11.6.1). A scheme is a
// token that is not followed by "=". The list ends at the first syntax error.
func parseChallenges(text string) []rawChallenge {
	var list []rawChallenge
	r := headerReader{text}
	for {
		r.skip(" \t,")
		name := r.token()
		if name == "" {
			return list
		}
		r.skip(" \t")
		if !r.next("=") { // a scheme begins
			list = append(list, rawChallenge{scheme: strings.ToLower(name), params: map[string]string{}})
			continue
		}
		r.skip(" \t=") // the rest of a token68's padding, too
		value, ok := r.value()
		if !ok || len(list) == 0 {
			return list
		}
		params := list[len(list)-1].params
		if _, given := params[strings.ToLower(name)]; !given {
			params[strings.ToLower(name)] = value
		}
	}
}

// headerReader reads the text of a header from its beginning.
type headerReader struct{ rest string }

func (r *headerReader) skip(characters string) { r.rest = strings.TrimLeft(r.rest, characters) }

func (r *headerReader) next(text string) bool {
	rest, ok := strings.CutPrefix(r.rest, text)
	r.rest = rest
	return ok
}

// token reads a token, or a token68 without its padding (RFC 9110, sections 5.6.2 and 11.2).
func (r *headerReader) token() string {
	end := strings.IndexFunc(r.rest, func(c rune) bool {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		return !letter && !strings.ContainsRune("!#$%&'*+-.^_`|~/:", c)
	})
	if end < 0 {
		end = len(r.rest)
	}
	token := r.rest[:end]
	r.rest = r.rest[end:]
	return token
}

// value reads a token or a quoted string.
func (r *headerReader) value() (string, bool) {
	if !r.next(`"`) {
		return r.token(), true
	}
	var value strings.Builder
	for i := 0; i < len(r.rest); i++ {
		switch c := r.rest[i]; {
		case c == '"':
			r.rest = r.rest[i+1:]
			return value.String(), true
		case c == '\\' && i+1 < len(r.rest):
			i++
			value.WriteByte(r.rest[i])
		default:
			value.WriteByte(c)
		}
	}
	return "", false
}
