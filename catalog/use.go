package catalog

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/airlock-mcp/airlock/internal/strictjson"
)

// Use is what a call does with a feature. The zero value calls a tool, reads a resource or gets a prompt.
type Use string

// The other uses.
const (
	UseComplete  Use = "complete"  // an argument of a prompt, or a variable of a template
	UseSubscribe Use = "subscribe" // to the changes of a resource
)

// UseName returns the name of a use of a feature in calls and records, such as complete:prompt:NAME.
func UseName(use Use, feature string) string {
	if use == "" {
		return feature
	}
	return string(use) + ":" + feature
}

// SplitUse is the inverse of UseName.
func SplitUse(name string) (use Use, feature string) {
	prefix, feature, ok := strings.Cut(name, ":")
	if use := Use(prefix); ok && (use == UseComplete || use == UseSubscribe) {
		return use, feature
	}
	return "", name
}

// usedAs returns the feature for a use other than the usual one, with the schema of its arguments. It reports whether
// the feature has this use.
func (t Tool) usedAs(use Use) (Tool, bool) {
	t.Use = use
	if use == UseComplete {
		t.InputSchema = json.RawMessage(`{"type":"object","properties":{"uri":{"type":"string"},"argument":` +
			`{"type":"object","properties":{"name":{"type":"string"},"value":{"type":"string"}},` +
			`"required":["name","value"]},"context":{"type":"object"}},"required":["argument"]}`)
		return t, t.Kind == KindPrompt || t.Kind == KindTemplate
	}
	return t, t.Kind == KindResource
}

// About returns the instructions of a server, without texts that are withheld from models, or "".
func (s *Snapshot) About(serverID string) string {
	server, _ := s.Server(serverID)
	for _, f := range server.Features {
		if f.Kind != KindAbout || f.Withheld {
			continue
		}
		var about map[string]json.RawMessage
		definition, err := s.Definition(serverID, f.Name)
		if err != nil || strictjson.UnmarshalOpen(definition.JSON, &about) != nil {
			return ""
		}
		text, _ := optionalText("instructions", about["instructions"]) // no text is like none
		return strings.TrimSpace(text)
	}
	return ""
}

// ChangedKinds returns the kinds of features whose lists differ between two snapshots.
func ChangedKinds(before, now *Snapshot) []Kind {
	var changed []Kind
	for _, kind := range append(FeatureKinds(), KindTool) {
		if !maps.Equal(before.versions(kind), now.versions(kind)) {
			changed = append(changed, kind)
		}
	}
	return changed
}

// versions returns the digests of the usable features of a kind.
func (s *Snapshot) versions(kind Kind) map[toolKey]string {
	found := map[toolKey]string{}
	for _, server := range s.servers {
		list := server.Features
		if kind == KindTool {
			found[toolKey{server: server.ID}] = "" // the list of tools names the servers
			list = slices.Concat(server.Tools, server.Features)
		}
		for i := range list {
			if f := &list[i]; f.Kind == kind && !f.Withheld {
				found[toolKey{server.ID, f.Name}] = f.Digest
			}
		}
	}
	return found
}
