package risk

import (
	"slices"
	"strings"

	"github.com/airlock-mcp/airlock/internal/lazyregexp"
	"github.com/airlock-mcp/airlock/policies"
)

// The names of members for the method of a request over HTTP, and for what it is sent to, without separators.
var (
	methodNames = []string{"method", "httpmethod", "requestmethod", "httpverb", "requesttype", "xhttpmethodoverride",
		"xhttpmethod", "xmethodoverride", "methodoverride"}
	targetNames = []string{"url", "uri", "href", "endpoint", "path", "route", "resource", "link", "address", "baseurl",
		"requesturl", "host"}
)

// riskOfMethod returns the risk of a method of HTTP: POST may also be a query.
func riskOfMethod(method string) policies.Risk {
	switch strings.ToUpper(method) {
	case "PUT", "PATCH", "DELETE":
		return policies.RiskHigh
	case "POST":
		return policies.RiskMedium
	}
	return policies.RiskLow
}

// requestLine matches the first line of a request, and the member of a form or a URL that replaces the method of the
// request. shortLine matches a request that has a method and a path only, which documents about programs often quote.
var (
	requestLine = lazyregexp.New(`(?:\A\s*|\n)(POST|PUT|PATCH|DELETE)\s+(?:https?://\S+|/\S*)\s+HTTP/\d|` +
		`\A\s*(POST|PUT|PATCH|DELETE)\s+https?://\S*\s*(?:\n|\z)|[?&]_method=(?i:(POST|PUT|PATCH|DELETE))\b`)
	shortLine = lazyregexp.New(`\A\s*(POST|PUT|PATCH|DELETE)\s+/\S*\s*(?:\n|\z)`)
)

// requests judges a text as a request over HTTP. The text is whole if it is not a part of another.
func (c *content) requests(path, text string, whole bool) {
	if !strings.Contains(text, "/") && !strings.Contains(text, "_method=") {
		return
	}
	if parts := requestLine.FindStringSubmatch(text); parts != nil {
		c.method(path, parts[1]+parts[2]+parts[3])
	}
	if parts := shortLine.FindStringSubmatch(text); whole && parts != nil {
		c.method(path, parts[1])
	}
}

func (c *content) method(path, method string) {
	c.add(riskOfMethod(method), path, "is a request over HTTP that changes something", "")
}

// request judges an object that is a request over HTTP: its method is in capitals, or its target is beside it.
func (c *content) request(path string, object map[string]any) {
	method, hasTarget := "", false
	for name, value := range object {
		text, ok := value.(string)
		if !ok {
			continue
		}
		folded := strings.ToLower(separators.Replace(name))
		text = strings.TrimSpace(text)
		inCapitals := text == strings.ToUpper(text)
		switch {
		case slices.Contains(methodNames, folded):
			if inCapitals {
				c.method(path, text)
			}
			method = text
		case inCapitals && (folded == "verb" || folded == "type") && riskOfMethod(text) > policies.RiskLow:
			method = text
		case slices.Contains(targetNames, folded):
			hasTarget = true
		}
	}
	if hasTarget {
		c.method(path, method)
	}
}
