package catalog

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"slices"
	"strings"

	"github.com/airlock-mcp/airlock/internal/canon"
	"github.com/airlock-mcp/airlock/internal/strictjson"
)

// Identifiers of the extension MCP Apps (SEP-1865, revision 2026-01-26).
const (
	ExtensionApps = "io.modelcontextprotocol/ui"
	AppMIME       = "text/html;profile=mcp-app" // of the only content that the extension has
	appScheme     = "ui://"
	appLegacyKey  = "ui/resourceUri" // in _meta of tools, before _meta.ui
)

// appMember is the member of a resource's definition in which Airlock describes the content of an app.
const appMember = "airlock/app"

// IsAppURI reports whether a URI identifies an app: a resource with a user interface.
func IsAppURI(uri string) bool { return strings.HasPrefix(uri, appScheme) }

// IsApp reports whether a feature is an app.
func (t *Tool) IsApp() bool { return t.Kind == KindResource && IsAppURI(t.Identifier()) }

// UI is the _meta.ui of a tool. The zero value is a tool without one, for models and for apps.
type UI struct {
	URI       string // of the app that shows the tool's results; empty if there is none
	OnlyModel bool   // apps must not call the tool
	OnlyApps  bool   // models and code must not see the tool
	Problem   string // why URI is empty although the tool declares an app
}

// App describes the content of an app at the time when its resource was listed. It is part of the definition, so a
// changed app is withheld like any changed definition.
type App struct {
	Digest   string          `json:"digest"` // "sha256:" and the hex SHA-256 of the HTML
	Bytes    int             `json:"bytes"`
	UI       json.RawMessage `json:"ui,omitempty"`       // the content's _meta.ui
	Unlisted bool            `json:"unlisted,omitempty"` // only a tool names the resource
}

// parseUI reads a tool's _meta. Values that are garbage are ignored, but visibility is not: a tool that is visible to
// nobody, or in a way that is not known, is an error.
func parseUI(raw json.RawMessage) (UI, error) {
	var meta, ui map[string]json.RawMessage
	var u UI
	if strictjson.UnmarshalOpen(raw, &meta) != nil {
		return u, nil
	}
	if declared := meta["ui"]; kindOf(declared) != kindMissing && strictjson.UnmarshalOpen(declared, &ui) != nil {
		return UI{Problem: fmt.Sprintf("_meta.ui is %s, not an object", kindOf(declared))}, nil
	}
	if declared := ui["visibility"]; kindOf(declared) != kindMissing && kindOf(declared) != kindNull {
		var list []string
		if err := strictjson.UnmarshalOpen(declared, &list); err != nil {
			return u, errors.New("_meta.ui.visibility is not a list of texts")
		}
		u.OnlyModel, u.OnlyApps = !slices.Contains(list, "app"), !slices.Contains(list, "model")
		if u.OnlyModel && u.OnlyApps {
			return u, errors.New(`_meta.ui.visibility has neither "model" nor "app"`)
		}
	}
	declared := ui["resourceUri"]
	if kindOf(declared) == kindMissing {
		declared = meta[appLegacyKey]
	}
	if kindOf(declared) == kindMissing || kindOf(declared) == kindNull {
		return u, nil
	}
	uri, err := identifierOf(KindResource, declared)
	switch {
	case err != nil:
		u.Problem = "_meta.ui.resourceUri: " + err.Error()
	case !IsAppURI(uri):
		u.Problem = "_meta.ui.resourceUri does not begin with " + appScheme
	default:
		u.URI = uri
	}
	return u, nil
}

// SplitApps splits a list of tools into those for models and code, and those that only apps call.
func SplitApps(tools []Tool) (forModels, onlyApps []Tool) {
	for _, tool := range tools {
		if tool.UI.OnlyApps {
			onlyApps = append(onlyApps, tool)
		} else {
			forModels = append(forModels, tool)
		}
	}
	return forModels, onlyApps
}

// AppURIs returns the URIs of the apps that tools and listed resources name, in order.
func AppURIs(tools, resources []Tool) []string {
	var uris []string
	for _, tool := range tools {
		uris = append(uris, tool.UI.URI)
	}
	for _, r := range resources {
		if r.IsApp() {
			uris = append(uris, r.Identifier())
		}
	}
	slices.Sort(uris)
	return slices.DeleteFunc(slices.Compact(uris), func(uri string) bool { return uri == "" })
}

// AppTools returns the tools that hosts with apps call themselves: those of servers with an app that can be shown. A
// tool with such an app keeps its UI. A tool without one is only for apps, because code calls it for the model.
func (s *Snapshot) AppTools() []Tool {
	var all []Tool
	for _, server := range s.servers {
		var tools []Tool
		shown := false
		for _, tool := range slices.Concat(server.Tools, server.Features) {
			app, err := s.lookup(server.ID, FeatureName(KindResource, tool.UI.URI))
			switch {
			case tool.Kind != KindTool || tool.Withheld:
				continue
			case tool.UI.URI != "" && err == nil && app.App.Digest != "":
				shown = true
			case tool.UI.OnlyModel:
				continue
			default:
				tool.UI = UI{OnlyApps: true}
			}
			tools = append(tools, tool)
		}
		if shown {
			all = append(all, tools...)
		}
	}
	return all
}

// AppDefinition returns the definition of a tool for hosts with apps, cleaned as by Definition.
func (s *Snapshot) AppDefinition(tool Tool) (json.RawMessage, error) {
	d, err := s.cleaned(&tool)
	return d.JSON, err
}

// DefineApp returns the definition of an app with a description of its content. listed is its definition in the list of
// resources, or nil. result is the server's answer to resources/read.
func DefineApp(uri string, listed, result json.RawMessage) (json.RawMessage, error) {
	content, err := parseApp(uri, result)
	if err != nil {
		return nil, err
	}
	app := App{Digest: canon.Digest(content.html), Bytes: len(content.html), UI: content.ui, Unlisted: listed == nil}
	members := map[string]json.RawMessage{"uri": mustMarshal(uri), "name": mustMarshal(uri)}
	if listed != nil {
		members = nil
		if err := strictjson.UnmarshalOpen(listed, &members); err != nil {
			return nil, err
		}
	}
	if members[appMember], err = json.Marshal(app); err != nil {
		return nil, err
	}
	return mustMarshal(members), nil
}

// appContent is the content of an app.
type appContent struct {
	html     []byte
	ui       json.RawMessage            // _meta.ui, or nil
	delivers map[string]json.RawMessage // the members that hosts get beside _meta
}

// parseApp reads the result of resources/read for an app: one content of AppMIME, as text or blob.
func parseApp(uri string, result json.RawMessage) (appContent, error) {
	var members, meta map[string]json.RawMessage
	var contents []map[string]json.RawMessage
	if strictjson.UnmarshalOpen(result, &members) != nil ||
		strictjson.UnmarshalOpen(members["contents"], &contents) != nil {
		return appContent{}, errors.New("the answer has no contents")
	}
	if len(contents) != 1 {
		return appContent{}, fmt.Errorf("the answer has %d contents, not one", len(contents))
	}
	has := func(name string) bool { return kindOf(contents[0][name]) == kindString }
	text := func(name string) (s string) { // another type is like an empty text
		strictjson.UnmarshalOpen(contents[0][name], &s)
		return s
	}
	if text("uri") != uri {
		return appContent{}, fmt.Errorf("the content is of another resource: %s", Quote(text("uri")))
	}
	kind, parameters, err := mime.ParseMediaType(text("mimeType"))
	if err != nil || kind != "text/html" || parameters["profile"] != "mcp-app" {
		return appContent{}, fmt.Errorf("the type is %s; Airlock shows %s only", Quote(text("mimeType")), AppMIME)
	}
	c := appContent{delivers: map[string]json.RawMessage{"uri": mustMarshal(uri), "mimeType": mustMarshal(AppMIME)}}
	switch {
	case has("text") && !has("blob"):
		c.html, c.delivers["text"] = []byte(text("text")), contents[0]["text"]
	case has("blob") && !has("text"):
		c.delivers["blob"] = contents[0]["blob"]
		if c.html, err = base64.StdEncoding.DecodeString(text("blob")); err != nil {
			return appContent{}, errors.New("blob is not base64")
		}
	default:
		return appContent{}, errors.New("the content must have either text or blob")
	}
	if strictjson.UnmarshalOpen(contents[0]["_meta"], &meta) == nil && kindOf(meta["ui"]) == kindObject {
		if c.ui, err = canon.JSON(meta["ui"]); err != nil {
			return appContent{}, fmt.Errorf("_meta.ui cannot be read: %w", err)
		}
	}
	return c, nil
}

// ErrAppChanged reports that an app has changed since its resource was listed.
var ErrAppChanged = errors.New("the app changed since it was listed, so it is withheld; Airlock lists it again, and " +
	"an operator looks at the change with `airlock tools diff`")

// DeliverApp returns the result of reading the app for a host, with the part of its _meta.ui that the operator grants,
// and a note about it for the record. The error is a sentence about the app, or ErrAppChanged.
func (t *Tool) DeliverApp(result json.RawMessage, grant AppGrant) (delivered json.RawMessage, note string, err error) {
	content, err := parseApp(t.Identifier(), result)
	switch {
	case err != nil:
		return nil, "", err
	case t.App.Digest == "":
		return nil, "", errors.New("the app is neither listed nor named by a tool of its server")
	case canon.Digest(content.html) != t.App.Digest || !bytes.Equal(content.ui, t.App.UI):
		return nil, "", ErrAppChanged
	}
	ui := content.ui
	if ui == nil {
		ui = t.listedUI()
	}
	granted, note := grant.narrow(ui)
	if len(granted) > 0 {
		content.delivers["_meta"] = mustMarshal(map[string]any{"ui": granted})
	}
	return mustMarshal(map[string]any{"contents": []any{content.delivers}}), note, nil
}

// listedUI returns the _meta.ui of the resource in the list, which holds if the content has none.
func (t *Tool) listedUI() json.RawMessage {
	var members, meta map[string]json.RawMessage
	if strictjson.UnmarshalOpen(t.Raw, &members) != nil || strictjson.UnmarshalOpen(members["_meta"], &meta) != nil {
		return nil
	}
	return meta["ui"]
}
