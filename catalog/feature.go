package catalog

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/yosida95/uritemplate/v3"

	"github.com/airlock-mcp/airlock/internal/canon"
	"github.com/airlock-mcp/airlock/internal/strictjson"
)

// Kind is the kind of a feature of a server (MCP 2025-11-25, Server Features). The zero value is a tool.
type Kind string

// The kinds of features.
const (
	KindTool     Kind = ""
	KindResource Kind = "resource"
	KindTemplate Kind = "template" // of resources, by a URI template (RFC 6570)
	KindPrompt   Kind = "prompt"
	KindAbout    Kind = "about" // the title, the icons and the instructions of the server itself
)

// Limits on the resources, templates and prompts of one server.
const (
	maxURI       = 8 << 10 // bytes
	maxPromptLen = 256     // characters of a prompt's name
	maxFeatures  = 10_000  // of one kind
)

// noun returns the word for a feature of this kind in sentences.
func (k Kind) noun() string {
	if k == KindTool {
		return "tool"
	}
	return string(k)
}

// identifier returns the member of a definition that identifies a feature of this kind to its server.
func (k Kind) identifier() string {
	switch k {
	case KindResource:
		return "uri"
	case KindTemplate:
		return "uriTemplate"
	}
	return "name"
}

// FeatureName returns the name of a feature in snapshots, profiles, settings, policies and records: a resource is
// resource:URI, a prompt is prompt:NAME. A tool has no colon in its name.
func FeatureName(kind Kind, identifier string) string {
	if kind == KindTool {
		return identifier
	}
	return string(kind) + ":" + identifier
}

// SplitFeatureName is the inverse of FeatureName.
func SplitFeatureName(name string) (Kind, string) {
	prefix, identifier, ok := strings.Cut(name, ":")
	if kind := Kind(prefix); ok && slices.Contains(FeatureKinds(), kind) {
		return kind, identifier
	}
	return KindTool, name
}

// FeatureKinds returns the kinds of features that are not tools.
func FeatureKinds() []Kind { return []Kind{KindResource, KindTemplate, KindPrompt, KindAbout} }

// Identifier returns what the server calls the feature: its URI, its URI template, or its name.
func (t *Tool) Identifier() string {
	_, identifier := SplitFeatureName(t.Name)
	return identifier
}

// IsRead reports whether a feature is read or expanded, and not called.
func (t *Tool) IsRead() bool { return t.Kind != KindTool }

// ParseFeatures parses the items of a list of resources, templates or prompts, as ParseTools does for tools.
func ParseFeatures(serverID string, kind Kind, items []json.RawMessage) (features []Tool, warnings []string) {
	if len(items) > maxFeatures {
		warnings = append(warnings, fmt.Sprintf("of %d %ss only the first %d are used", len(items), kind, maxFeatures))
		items = items[:maxFeatures]
	}
	at := make(map[string]int, len(items))
	for i, raw := range items {
		feature, err := parseFeature(serverID, kind, raw)
		if err != nil {
			warnings = append(warnings, fmt.Sprintf("item %d of the list of %ss is left out: %v", i+1, kind, err))
			continue
		}
		first, twice := at[feature.Name]
		switch {
		case !twice:
			at[feature.Name] = len(features)
			features = append(features, feature)
		case features[first].Digest != feature.Digest:
			warnings = append(warnings, fmt.Sprintf(
				"%s %s is listed twice with different definitions; the first is used", kind,
				Quote(feature.Identifier())))
		}
	}
	return features, warnings
}

func parseFeature(serverID string, kind Kind, raw json.RawMessage) (Tool, error) {
	fields, err := definitionFields(raw)
	if err != nil {
		return Tool{}, err
	}
	f := Tool{ServerID: serverID, Kind: kind, Raw: bytes.Clone(raw), InputSchema: inputOfFeature(kind, fields)}
	identifier, err := identifierOf(kind, fields[kind.identifier()])
	if err != nil {
		return Tool{}, err
	}
	f.Name = FeatureName(kind, identifier)
	if f.Title, err = optionalText("title", fields["title"]); err != nil {
		return Tool{}, err
	}
	if f.Description, err = optionalText("description", fields["description"]); err != nil {
		return Tool{}, err
	}
	if f.IsApp() {
		strictjson.UnmarshalOpen(fields[appMember], &f.App) // only Airlock writes it
	}
	f.Digest = canon.Digest(f.Reviewed())
	return f, nil
}

// identifierOf checks the identifier of a feature.
func identifierOf(kind Kind, raw json.RawMessage) (string, error) {
	text, err := optionalText(kind.identifier(), raw)
	switch {
	case err != nil:
		return "", err
	case text == "":
		return "", fmt.Errorf("%s is empty", kind.identifier())
	case len(text) > maxURI || kind == KindPrompt && utf8.RuneCountInString(text) > maxPromptLen:
		return "", fmt.Errorf("%s is longer than allowed", kind.identifier())
	case Visible(text) != text:
		return "", fmt.Errorf("%s contains characters that cannot be seen", kind.identifier())
	}
	switch kind {
	case KindResource:
		if u, err := url.Parse(text); err != nil || u.Scheme == "" {
			return "", fmt.Errorf("uri is not an absolute URI")
		}
	case KindTemplate:
		if _, err := uritemplate.New(text); err != nil {
			return "", fmt.Errorf("uriTemplate is not a URI template (RFC 6570)")
		}
	}
	return text, nil
}

// inputOfFeature returns the JSON Schema of the arguments with which a feature is read. Prompts take texts only.
func inputOfFeature(kind Kind, fields map[string]json.RawMessage) json.RawMessage {
	if kind != KindPrompt {
		return json.RawMessage(`{"type":"object","properties":{"uri":{"type":"string"}},"required":["uri"],` +
			`"additionalProperties":false}`)
	}
	var arguments []struct {
		Name     string `json:"name"`
		Required bool   `json:"required"`
	}
	required, properties := []string{}, map[string]any{}
	if strictjson.UnmarshalOpen(fields["arguments"], &arguments) == nil {
		for _, a := range arguments {
			properties[a.Name] = map[string]string{"type": "string"}
			if a.Required {
				required = append(required, a.Name)
			}
		}
	}
	schema, err := json.Marshal(map[string]any{"type": "object", "properties": properties, "required": required,
		"additionalProperties": map[string]string{"type": "string"}})
	if err != nil {
		panic("catalog: texts always have a JSON form")
	}
	return schema
}

// Reviewed returns the part of a definition that people review and that pins compare: all of it for a tool. The size
// of a resource and the time of its last change (MCP 2025-11-25, Resources) are left out, because they change with
// its content.
func (t *Tool) Reviewed() json.RawMessage {
	if t.Kind != KindResource && t.Kind != KindTemplate {
		return t.Raw
	}
	var members, annotations map[string]json.RawMessage
	if strictjson.UnmarshalOpen(t.Raw, &members) != nil {
		return t.Raw
	}
	if kindOf(members["size"]) == kindNumber {
		delete(members, "size")
	}
	if strictjson.UnmarshalOpen(members["annotations"], &annotations) == nil && isTime(annotations["lastModified"]) {
		delete(annotations, "lastModified")
		members["annotations"] = mustMarshal(annotations)
	}
	return mustMarshal(members)
}

// isTime reports whether a JSON value has no other characters than a time has (ISO 8601).
func isTime(raw json.RawMessage) bool {
	return kindOf(raw) == kindString && len(raw) < 64 && strings.Trim(string(raw), `"0123456789-+:.TZ`) == ""
}

// mustMarshal encodes decoded JSON and texts, which always have a JSON form.
func mustMarshal(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		panic("catalog: decoded JSON always has a JSON form")
	}
	return raw
}

// readable finds a resource that is not listed and can be read nevertheless: one of a listed template, or any other of
// a server that lists resources or templates, because servers need not list all of them. If the server has none, the
// error is an *UnknownError, and if each template that fits is withheld, a *WithheldError.
func (s *Snapshot) readable(serverID, uri string) (Tool, error) {
	name := FeatureName(KindResource, uri)
	server, _ := s.Server(serverID)
	var withheld error
	offers := false
	for i := range server.Features {
		f := &server.Features[i]
		offers = offers || f.Kind == KindResource || f.Kind == KindTemplate
		if f.Kind != KindTemplate || !f.expandsTo(uri) {
			continue
		}
		if !f.Withheld {
			found := *f
			found.Kind, found.Name = KindResource, name
			return found, nil
		}
		withheld = &WithheldError{serverID, f.Name}
	}
	_, malformed := identifierOf(KindResource, mustMarshal(uri))
	switch {
	case withheld != nil:
		return Tool{}, withheld
	case malformed != nil || !offers || s.profile != nil && !s.profile.Shows(serverID, name):
		return Tool{}, s.unknown(serverID, name)
	}
	raw := json.RawMessage("{}")
	return Tool{ServerID: serverID, Kind: KindResource, Name: name, Raw: raw, Digest: canon.Digest(raw),
		InputSchema: inputOfFeature(KindResource, nil)}, nil
}

// expandsTo reports whether the URI template of a feature has a URI among its expansions.
func (t *Tool) expandsTo(uri string) bool {
	template, err := uritemplate.New(t.Identifier())
	return err == nil && template.Match(uri) != nil
}

// FeaturesOf returns the features of one kind of all servers that can be used, by server and name.
func (s *Snapshot) FeaturesOf(kind Kind) []Tool {
	var found []Tool
	for _, server := range s.servers {
		for _, f := range server.Features {
			if f.Kind == kind && !f.Withheld && !f.App.Unlisted {
				found = append(found, f)
			}
		}
	}
	return found
}

// ResourceServer returns the server whose resource a URI is: the one that lists it, or else the one whose template
// fits, or else the only one with resources. If none or several of them fit, it returns "".
func (s *Snapshot) ResourceServer(uri string) string {
	isListed := func(f *Tool) bool { return f.Kind == KindResource && f.Identifier() == uri }
	fits := func(f *Tool) bool { return f.Kind == KindTemplate && !f.Withheld && f.expandsTo(uri) }
	isResource := func(f *Tool) bool { return f.Kind == KindResource || f.Kind == KindTemplate }
	// Templates are parsed only for a URI that is not listed: lists of resources ask for each of their URIs.
	for _, is := range []func(*Tool) bool{isListed, fits, isResource} {
		if servers := s.serversWith(is); len(servers) == 1 {
			return servers[0]
		} else if len(servers) > 1 {
			return ""
		}
	}
	return ""
}

// serversWith returns the servers that have a feature of which is returns true.
func (s *Snapshot) serversWith(is func(*Tool) bool) []string {
	var ids []string
	for _, server := range s.servers {
		for i := range server.Features {
			if is(&server.Features[i]) {
				ids = append(ids, server.ID)
				break
			}
		}
	}
	return ids
}
