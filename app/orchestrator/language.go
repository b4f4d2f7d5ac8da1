package orchestrator

import "strings"

// languages maps every name of a language that is understood to the image that
// runs it. TypeScript runs on Node, which strips its types.
var languages = map[string]string{
	"python": "python", "python3": "python", "py": "python", "python-3": "python",
	"node": "node", "nodejs": "node", "node.js": "node", "javascript": "node", "js": "node", "mjs": "node", "cjs": "node",
	"ecmascript": "node", "typescript": "node", "ts": "node", "mts": "node",
}

// ParseLanguage returns the name that a Request takes for a language, whatever it
// is usually called ("javascript", "ts", "py"); it reports whether it is known.
func ParseLanguage(name string) (string, bool) {
	language, known := languages[strings.ToLower(strings.TrimSpace(name))]
	return language, known
}
