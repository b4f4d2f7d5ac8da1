package policies

import (
	"net/url"
	"path"
	"regexp"
	"strings"

	"github.com/cedar-policy/cedar-go/x/exp/ast"
)

// maxPath is the length of the longest text that is normalised as a path (PATH_MAX).
const maxPath = 4096

// unclear is the value of a text that a server could read as another path. Rules about it fail to
// evaluate, which denies the call; a member that is absent would only not match.
type unclear struct{}

// paths returns the arguments with each text normalised as a path: context.paths. Other values do not change.
func paths(v any) any {
	switch v := v.(type) {
	case string:
		clean, ok := normalPath(v)
		if !ok {
			return unclear{}
		}
		return clean
	case map[string]any:
		members := make(map[string]any, len(v))
		for name, member := range v {
			if member != nil {
				members[name] = paths(member)
			}
		}
		return members
	case []any:
		items := make([]any, len(v))
		for i, item := range v {
			items[i] = paths(item)
		}
		return items
	}
	return v
}

// normalPath returns a path with slashes and without empty parts, "." and "..", and without a slash at its end. A
// URL with the scheme file is its path. It returns false if a server could read the text as another path: it is too
// long, has a control character, or has a separator or a dot as an escape of a URL.
func normalPath(text string) (string, bool) {
	if text == "" {
		return "", true
	}
	if len(text) > maxPath || ambiguous.MatchString(text) {
		return "", false
	}
	if u, err := url.Parse(text); err == nil && strings.EqualFold(u.Scheme, "file") {
		text = u.Path
	}
	return path.Clean(strings.ReplaceAll(text, `\`, "/")), true
}

var ambiguous = regexp.MustCompile(`(?i)[\x00-\x1f\x7f]|%(?:25)*(?:2e|2f|5c|00)`)

// pathBegins matches the beginning of a path that names its first directory. Texts with a slash elsewhere, such as
// owner/repository and either/or, need not be paths.
var pathBegins = regexp.MustCompile(`^(?:[A-Za-z]:|~|\.{1,2}|(?i:file)://)?[/\\]`)

// pathPrefix matches a pattern for everything below a directory.
var pathPrefix = regexp.MustCompile(`^(?:[A-Za-z]:|~|\.{1,2}|file://[^/*]*)?(?:/|\\\\?)[^*]*\*`)

// prefixOfPaths returns the argument that a pattern for paths is compared with, if the text has not been normalised.
func prefixOfPaths(n ast.NodeTypeLike) (argument string, ok bool) {
	of := pathOf(n.Arg)
	if len(of) < 3 || of[0] != "context" || of[1] != "input" {
		return "", false
	}
	pattern := strings.Trim(string(n.Value.MarshalCedar()), `"`)
	return strings.Join(of[2:], "."), pathPrefix.MatchString(pattern)
}

// asPaths returns the possible values of arguments after normalisation.
func asPaths(v abstract) abstract {
	v.texts = nil
	if v.element != nil {
		element := asPaths(*v.element)
		v.element = &element
	}
	items := v.items
	v.items = nil
	for _, item := range items {
		v.items = append(v.items, asPaths(item))
	}
	if v.members != nil {
		members := make(map[string]member, len(v.members))
		for name, m := range v.members {
			members[name] = member{asPaths(m.value), m.presence}
		}
		v.members = members
	}
	return v
}
