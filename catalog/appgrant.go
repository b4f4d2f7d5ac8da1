package catalog

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/airlock-mcp/airlock/internal/lazyregexp"
	"github.com/airlock-mcp/airlock/internal/strictjson"
	"github.com/airlock-mcp/airlock/internal/visible"
)

// AppGrant is what the operator lets the apps of a server use. The zero value is nothing: no other origin, and no
// permission of the browser.
type AppGrant struct {
	// Origins by the member of _meta.ui.csp: AppOrigins are its keys.
	Origins     map[string][]string
	Permissions []string // of AppPermissions
	// Domain is the dedicated origin that hosts may give the apps. Behind Airlock a host cannot know which server an
	// app comes from, so a server could claim the origin of another one.
	Domain string
}

// AppOrigins are the members of _meta.ui.csp.
func AppOrigins() []string {
	return []string{"connectDomains", "resourceDomains", "frameDomains", "baseUriDomains"}
}

// AppPermissions are the members of _meta.ui.permissions.
func AppPermissions() []string {
	return []string{"camera", "microphone", "geolocation", "clipboardWrite"}
}

// appOrigin is an origin of a content security policy, with * for any subdomains. No character of it has a meaning in a
// header.
var appOrigin = lazyregexp.New(`^(https?|wss?)://(\*\.)?([a-z0-9-]+\.)*[a-z0-9-]+(:[0-9]{1,5})?$`)

// ParseAppOrigin returns the origin of a content security policy in lower case and without a slash at its end. It
// reports whether text is such an origin.
func ParseAppOrigin(text string) (string, bool) {
	plain := strings.TrimSuffix(strings.ToLower(text), "/")
	return plain, len(plain) <= 300 && appOrigin.MatchString(plain)
}

// common returns the origins that two origins have in common, or "".
func common(a, b string) string {
	for range 2 {
		scheme, host, _ := strings.Cut(a, "://")
		otherScheme, otherHost, _ := strings.Cut(b, "://")
		suffix, wild := strings.CutPrefix(host, "*")
		if scheme == otherScheme && (host == otherHost || wild && strings.HasSuffix(otherHost, suffix)) {
			return b
		}
		a, b = b, a
	}
	return ""
}

// narrow returns the granted part of a _meta.ui and a note about it. Members that MCP Apps do not have are left out.
func (g AppGrant) narrow(declared json.RawMessage) (granted map[string]json.RawMessage, note string) {
	var ui, csp, permissions map[string]json.RawMessage
	granted = map[string]json.RawMessage{}
	if strictjson.UnmarshalOpen(declared, &ui) != nil {
		return granted, ""
	}
	strictjson.UnmarshalOpen(ui["csp"], &csp)                 // another type is like none
	strictjson.UnmarshalOpen(ui["permissions"], &permissions) // likewise
	var given, withheld []string
	origins := map[string]json.RawMessage{}
	for _, member := range AppOrigins() {
		var asked []string
		if strictjson.UnmarshalOpen(csp[member], &asked) != nil {
			continue
		}
		allowed, refused := g.origins(member, asked)
		if len(allowed) > 0 {
			origins[member] = mustMarshal(allowed)
		}
		given, withheld = append(given, noted(member, allowed)...), append(withheld, noted(member, refused)...)
	}
	if len(origins) > 0 {
		granted["csp"] = mustMarshal(origins)
	}
	uses := map[string]json.RawMessage{}
	for _, name := range AppPermissions() {
		switch {
		case kindOf(permissions[name]) != kindObject:
		case slices.Contains(g.Permissions, name):
			uses[name], given = json.RawMessage("{}"), append(given, name)
		default:
			withheld = append(withheld, name)
		}
	}
	if len(uses) > 0 {
		granted["permissions"] = mustMarshal(uses)
	}
	var domain string
	if strictjson.UnmarshalOpen(ui["domain"], &domain) == nil && domain != "" {
		if domain == g.Domain {
			granted["domain"], given = mustMarshal(domain), append(given, "domain "+domain)
		} else {
			withheld = append(withheld, noted("domain", []string{domain})...)
		}
	}
	if kindOf(ui["prefersBorder"]) == kindBool {
		granted["prefersBorder"] = ui["prefersBorder"]
	}
	return granted, strings.Join(slices.Concat(enumerated("the app may use ", given),
		enumerated("the app may not use ", withheld)), "; ")
}

// origins returns the granted part of the origins that an app asks for in one member, and what is refused.
func (g AppGrant) origins(member string, asked []string) (allowed, refused []string) {
	for _, text := range asked {
		origin, ok := ParseAppOrigin(text)
		found := false
		for _, entry := range g.Origins[member] {
			if both := common(entry, origin); ok && both != "" {
				found = true
				if !slices.Contains(allowed, both) {
					allowed = append(allowed, both)
				}
			}
		}
		if !found {
			refused = append(refused, text)
		}
	}
	return allowed, refused
}

// maxNoted is how many origins of one member a note lists, maxNotedText how many characters of each.
const (
	maxNoted     = 8
	maxNotedText = 100
)

// noted returns the entry of a member in a note.
func noted(member string, texts []string) []string {
	if len(texts) == 0 {
		return nil
	}
	var shown []string
	for _, text := range texts[:min(len(texts), maxNoted)] {
		shown = append(shown, visible.Clip(text, maxNotedText))
	}
	if more := len(texts) - len(shown); more > 0 {
		shown = append(shown, fmt.Sprintf("%d more", more))
	}
	return []string{member + " " + strings.Join(shown, " ")}
}

// enumerated returns a list behind its beginning, or nothing.
func enumerated(begin string, texts []string) []string {
	if len(texts) == 0 {
		return nil
	}
	return []string{begin + strings.Join(texts, ", ")}
}
