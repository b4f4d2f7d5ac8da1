package catalog_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/catalog"
)

// Issue 31: the visibility of a tool is read strictly, and a garbled app is ignored.
func TestToolsDeclareApps(t *testing.T) {
	long := "ui://crm/" + strings.Repeat("a", 9<<10)
	for name, c := range map[string]struct {
		meta    string
		want    catalog.UI
		refused string // the tool is left out
	}{
		"nothing":     {meta: `{}`},
		"an app":      {meta: `{"ui":{"resourceUri":"ui://crm/a"}}`, want: catalog.UI{URI: "ui://crm/a"}},
		"the old key": {meta: `{"ui/resourceUri":"ui://crm/a"}`, want: catalog.UI{URI: "ui://crm/a"}},
		"both keys": {meta: `{"ui/resourceUri":"ui://b","ui":{"resourceUri":"ui://a"}}`,
			want: catalog.UI{URI: "ui://a"}},
		"for both":          {meta: `{"ui":{"visibility":["app","model"]}}`},
		"for apps":          {meta: `{"ui":{"visibility":["app"]}}`, want: catalog.UI{OnlyApps: true}},
		"for the model":     {meta: `{"ui":{"visibility":["model"]}}`, want: catalog.UI{OnlyModel: true}},
		"an unknown reader": {meta: `{"ui":{"visibility":["app","admin"]}}`, want: catalog.UI{OnlyApps: true}},
		"null":              {meta: `{"ui":{"visibility":null,"resourceUri":null}}`},
		"only unknown":      {meta: `{"ui":{"visibility":["admin"]}}`, refused: "neither"},
		"nobody":            {meta: `{"ui":{"visibility":[]}}`, refused: "neither"},
		"not a list":        {meta: `{"ui":{"visibility":"app"}}`, refused: "not a list"},
		"not texts":         {meta: `{"ui":{"visibility":[1]}}`, refused: "not a list"},
		"_meta is a list":   {meta: `[]`},
		"ui is a text":      {meta: `{"ui":"ui://a"}`, want: catalog.UI{Problem: "_meta.ui is text, not an object"}},
		"the URI is a list": {meta: `{"ui":{"resourceUri":[]}}`,
			want: catalog.UI{Problem: "_meta.ui.resourceUri: uri is a list, not text"}},
		"the web": {meta: `{"ui":{"resourceUri":"https://a"}}`,
			want: catalog.UI{Problem: "_meta.ui.resourceUri does not begin with ui://"}},
		"a script": {meta: `{"ui":{"resourceUri":"javascript:alert(1)"}}`,
			want: catalog.UI{Problem: "_meta.ui.resourceUri does not begin with ui://"}},
		"not a URI": {meta: `{"ui":{"resourceUri":"ui"}}`,
			want: catalog.UI{Problem: "_meta.ui.resourceUri: uri is not an absolute URI"}},
		"hidden characters": {meta: `{"ui":{"resourceUri":"ui://a\u200bb"}}`,
			want: catalog.UI{Problem: "_meta.ui.resourceUri: uri contains characters that cannot be seen"}},
		"too long": {meta: `{"ui":{"resourceUri":"` + long + `"}}`,
			want: catalog.UI{Problem: "_meta.ui.resourceUri: uri is longer than allowed"}},
		"garbage, for apps": {meta: `{"ui":{"resourceUri":7,"visibility":["app"]}}`,
			want: catalog.UI{OnlyApps: true, Problem: "_meta.ui.resourceUri: uri is a number, not text"}},
		"empty": {meta: `{"ui":{"resourceUri":""}}`,
			want: catalog.UI{Problem: "_meta.ui.resourceUri: uri is empty"}},
		"other members of ui": {meta: `{"ui":{"csp":{"connectDomains":["*"]}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			raw := json.RawMessage(`{"name":"show","inputSchema":{"type":"object"},"_meta":` + c.meta + `}`)
			tools, warnings := catalog.ParseTools("crm", []json.RawMessage{raw})
			if c.refused != "" {
				if len(tools) != 0 || len(warnings) != 1 || !strings.Contains(warnings[0], c.refused) {
					t.Errorf("got %d tools and %q, want none, and %q", len(tools), warnings, c.refused)
				}
				return
			}
			if len(tools) != 1 || tools[0].UI != c.want {
				t.Fatalf("got %+v and %q, want %+v", tools, warnings, c.want)
			}
			if said := len(warnings) > 0; said != (c.want.Problem != "") {
				t.Errorf("got warnings %q", warnings)
			}
		})
	}
}

// read is an answer to resources/read with one content.
func read(uri, mime, member, value, meta string) json.RawMessage {
	quoted, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	const form = `{"contents":[{"uri":%q,"mimeType":%q,%q:%s,"_meta":%s}],"_meta":{"ui":{"csp":"x"}}}`
	return json.RawMessage(fmt.Sprintf(form,
		uri, mime, member, quoted, meta))
}

// app returns the resource of an app as it was listed.
func app(t *testing.T, uri string, listed, result json.RawMessage) catalog.Tool {
	t.Helper()
	definition, err := catalog.DefineApp(uri, listed, result)
	if err != nil {
		t.Fatal(err)
	}
	return features(t, "crm", catalog.KindResource, string(definition))[0]
}

const page = "<!doctype html><p>password: 'hunter2'</p>"

// Issue 31: hosts get an app with the part of its policy that the operator grants, and no text of it leaves the grammar
// of origins.
func TestAppsAreNarrowed(t *testing.T) {
	grant := catalog.AppGrant{Origins: map[string][]string{
		"connectDomains":  {"https://api.example.com", "wss://*.example.com:8443"},
		"resourceDomains": {"https://*.cdn.example"},
		"frameDomains":    {"https://player.example"},
	}, Permissions: []string{"geolocation"}, Domain: "crm.apps.example"}
	for name, c := range map[string]struct {
		meta, want, note string
		grant            *catalog.AppGrant
	}{
		"nothing": {meta: `{}`, want: `null`},
		"granted": {meta: `{"ui":{"csp":{"connectDomains":["https://api.example.com"]},` +
			`"permissions":{"geolocation":{}},"domain":"crm.apps.example","prefersBorder":true}}`,
			want: `{"csp":{"connectDomains":["https://api.example.com"]},"domain":"crm.apps.example",` +
				`"permissions":{"geolocation":{}},"prefersBorder":true}`,
			note: "the app may use connectDomains https://api.example.com, geolocation, domain crm.apps.example"},
		"no grant": {grant: &catalog.AppGrant{}, meta: `{"ui":{"csp":{"connectDomains":["https://api.example.com"]},` +
			`"permissions":{"camera":{}},"domain":"crm.apps.example"}}`, want: `null`,
			note: "the app may not use connectDomains https://api.example.com, camera, domain crm.apps.example"},
		"another list": {meta: `{"ui":{"csp":{"frameDomains":["https://api.example.com"]}}}`, want: `null`,
			note: "the app may not use frameDomains https://api.example.com"},
		"below a wildcard": {meta: `{"ui":{"csp":{"resourceDomains":["https://a.b.cdn.example",` +
			`"https://*.b.cdn.example","https://cdn.example","https://evilcdn.example"]}}}`,
			want: `{"csp":{"resourceDomains":["https://a.b.cdn.example","https://*.b.cdn.example"]}}`,
			note: "the app may use resourceDomains https://a.b.cdn.example https://*.b.cdn.example; " +
				"the app may not use resourceDomains https://cdn.example https://evilcdn.example"},
		"above a grant": {meta: `{"ui":{"csp":{"connectDomains":["https://*.example.com",` +
			`"wss://*.example.com"]}}}`,
			want: `{"csp":{"connectDomains":["https://api.example.com"]}}`,
			note: "the app may use connectDomains https://api.example.com; the app may not use connectDomains " +
				"wss://*.example.com"},
		"another scheme and port": {meta: `{"ui":{"csp":{"connectDomains":["http://api.example.com",` +
			`"https://api.example.com:8443"]}}}`, want: `null`,
			note: "the app may not use connectDomains http://api.example.com https://api.example.com:8443"},
		"injection": {meta: `{"ui":{"csp":{"connectDomains":["https://api.example.com; script-src *",` +
			`"https://api.example.com\nX: y","'unsafe-eval'","*","https:","data:","https://*","https://a\"b",` +
			`"https://api.example.com/path","https://api.example.com, https://evil"]}}}`, want: `null`,
			note: "the app may not use connectDomains https://api.example.com; script-src * " +
				"https://api.example.com\\nX: y 'unsafe-eval' * https: data: https://* https://a\"b 2 more"},
		"garbage": {meta: `{"ui":{"csp":{"connectDomains":"https://api.example.com","resourceDomains":[7]},` +
			`"permissions":["camera"],"domain":7,"prefersBorder":"yes"}}`, want: `null`},
		"csp is a text": {meta: `{"ui":{"csp":"connect-src *","permissions":true}}`, want: `null`},
		"unknown members": {meta: `{"ui":{"csp":{"scriptDomains":["*"]},"permissions":{"usb":{}}},` +
			`"openai/widgetCSP":{}}`,
			want: `null`},
		"an unknown domain": {meta: `{"ui":{"domain":"other.apps.example"}}`,
			want: `null`, note: "the app may not use domain other.apps.example"},
	} {
		t.Run(name, func(t *testing.T) {
			result := read("ui://crm/a", "text/html; profile=mcp-app", "text", page, c.meta)
			tool := app(t, "ui://crm/a", nil, result)
			used := grant
			if c.grant != nil {
				used = *c.grant
			}
			delivered, note, err := tool.DeliverApp(result, used)
			if err != nil {
				t.Fatal(err)
			}
			var got struct {
				Contents []struct {
					URI, MIMEType, Text string
					Meta                map[string]json.RawMessage `json:"_meta"`
				}
				Meta json.RawMessage `json:"_meta"`
			}
			if err := json.Unmarshal(delivered, &got); err != nil {
				t.Fatal(err)
			}
			if one := got.Contents[0]; one.Text != page || one.MIMEType != catalog.AppMIME || got.Meta != nil {
				t.Errorf("got %s", delivered)
			}
			ui := string(got.Contents[0].Meta["ui"])
			if ui == "" {
				ui = "null"
			}
			if ui != c.want || len(got.Contents[0].Meta) > 1 {
				t.Errorf("got %s, want %s", ui, c.want)
			}
			if note != c.note {
				t.Errorf("got the note %q, want %q", note, c.note)
			}
		})
	}
}

// Issue 31: the policy of the list holds if the content has none.
func TestAppsInheritTheirListedPolicy(t *testing.T) {
	result := json.RawMessage(`{"contents":[{"uri":"ui://crm/a","mimeType":"text/html;profile=mcp-app","blob":"` +
		base64.StdEncoding.EncodeToString([]byte(page)) + `"}]}`)
	listed := json.RawMessage(`{"uri":"ui://crm/a","name":"a",` +
		`"_meta":{"ui":{"csp":{"connectDomains":["https://a.example"]}}}}`)
	tool := app(t, "ui://crm/a", listed, result)
	grant := catalog.AppGrant{Origins: map[string][]string{"connectDomains": {"https://a.example"}}}
	delivered, _, err := tool.DeliverApp(result, grant)
	if err != nil || !strings.Contains(string(delivered), `"connectDomains":["https://a.example"]`) {
		t.Errorf("got %s and %v", delivered, err)
	}
}

// Issue 31: an app whose HTML or policy changes has another definition, and is not delivered before it is listed again.
func TestAppsThatChange(t *testing.T) {
	first := read("ui://crm/a", catalog.AppMIME, "text", page, `{}`)
	tool := app(t, "ui://crm/a", nil, first)
	for name, result := range map[string]json.RawMessage{
		"other HTML":     read("ui://crm/a", catalog.AppMIME, "text", page+" ", `{}`),
		"another policy": read("ui://crm/a", catalog.AppMIME, "text", page, `{"ui":{"prefersBorder":true}}`),
	} {
		if _, _, err := tool.DeliverApp(result, catalog.AppGrant{}); !errors.Is(err, catalog.ErrAppChanged) {
			t.Errorf("%s: got %v, want ErrAppChanged", name, err)
		}
		if other := app(t, "ui://crm/a", nil, result); other.Digest == tool.Digest {
			t.Errorf("%s: the definition is the same", name)
		}
	}
	same := read("ui://crm/a", catalog.AppMIME, "blob", base64.StdEncoding.EncodeToString([]byte(page)), `{"x":1}`)
	if _, _, err := tool.DeliverApp(same, catalog.AppGrant{}); err != nil {
		t.Errorf("the same HTML: %v", err)
	}
}

// Issue 31: only the content of the app is accepted.
func TestAppsThatAreNone(t *testing.T) {
	for name, c := range map[string]struct{ result, want string }{
		"not JSON":     {`{`, "no contents"},
		"no contents":  {`{"contents":null}`, "0 contents"},
		"garbage":      {`{"contents":"x"}`, "no contents"},
		"two contents": {`{"contents":[{},{}]}`, "2 contents"},
		"another resource": {`{"contents":[{"uri":"ui://b","mimeType":"text/html;profile=mcp-app","text":""}]}`,
			"another resource"},
		"a page": {`{"contents":[{"uri":"ui://a","mimeType":"text/html","text":""}]}`, "the type is"},
		"an address": {`{"contents":[{"uri":"ui://a","mimeType":"text/uri-list","text":"https://evil.example"}]}`,
			"the type is"},
		"no type": {`{"contents":[{"uri":"ui://a","text":""}]}`, "the type is"},
		"no content": {`{"contents":[{"uri":"ui://a","mimeType":"text/html;profile=mcp-app"}]}`,
			"either text or blob"},
		"both": {`{"contents":[{"uri":"ui://a","mimeType":"text/html;profile=mcp-app","text":"","blob":""}]}`,
			"either text or blob"},
		"not base64": {`{"contents":[{"uri":"ui://a","mimeType":"text/html;profile=mcp-app","blob":"%"}]}`,
			"base64"},
	} {
		_, err := catalog.DefineApp("ui://a", nil, json.RawMessage(c.result))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
	unread := features(t, "crm", catalog.KindResource, `{"uri":"ui://a","name":"a"}`)[0]
	result := read("ui://a", catalog.AppMIME, "text", page, `{}`)
	if _, _, err := unread.DeliverApp(result, catalog.AppGrant{}); err == nil {
		t.Error("an app that was never read is delivered")
	}
}

// Issue 31: a server with an app has tools for hosts; those for apps are hidden from models, and an app that is
// withheld or missing takes its tools with it.
func TestAppTools(t *testing.T) {
	server := func(id string, apps ...catalog.Tool) catalog.Server {
		var raw []json.RawMessage
		for name, meta := range map[string]string{"show": `{"ui":{"resourceUri":"ui://crm/a"}}`, "plain": `{}`,
			"refresh": `{"ui":{"visibility":["app"]}}`, "secret": `{"ui":{"visibility":["model"]}}`,
			"lost": `{"ui":{"resourceUri":"ui://crm/missing"}}`} {
			raw = append(raw, json.RawMessage(`{"name":"`+name+`","inputSchema":{"type":"object"},"_meta":`+meta+`}`))
		}
		tools, warnings := catalog.ParseTools(id, raw)
		if len(warnings) > 0 {
			t.Fatal(warnings)
		}
		models, onlyApps := catalog.SplitApps(tools)
		for i := range apps {
			apps[i].ServerID = id
		}
		return catalog.Server{ID: id, Tools: models, Features: append(onlyApps, apps...)}
	}
	names := func(s *catalog.Snapshot) (names []string) {
		for _, tool := range s.AppTools() {
			names = append(names, fmt.Sprintf("%s %v %s", tool.Name, tool.UI.OnlyApps, tool.UI.URI))
		}
		slices.Sort(names)
		return names
	}
	one := app(t, "ui://crm/a", nil, read("ui://crm/a", catalog.AppMIME, "text", page, `{}`))
	s := snapshot(t, server("crm", one))
	want := []string{"lost true ", "plain true ", "refresh true ", "show false ui://crm/a"}
	if got := names(s); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if _, err := s.Definition("crm", "refresh"); err == nil {
		t.Error("a model reads the definition of a tool for apps")
	}
	if hits := s.Find(catalog.Query{Text: "refresh"}); slices.ContainsFunc(hits.Tools, func(e catalog.Entry) bool {
		return e.ToolName == "refresh"
	}) {
		t.Error("a model finds a tool for apps")
	}
	if listed := s.FeaturesOf(catalog.KindResource); len(listed) != 0 {
		t.Errorf("a resource that the server does not list is listed: %v", listed)
	}
	if got := names(snapshot(t, server("crm", catalog.Withhold(one)))); len(got) != 0 {
		t.Errorf("with a changed app: got %q", got)
	}
	if got := names(snapshot(t, server("crm"))); len(got) != 0 {
		t.Errorf("without the app: got %q", got)
	}
	profile := &catalog.Profile{Name: "p", Servers: []catalog.ProfileServers{
		{Server: "crm", Tools: []catalog.Pattern{"show"}}}}
	if got := names(s.Within(profile)); !slices.Equal(got, []string{"show false ui://crm/a"}) {
		t.Errorf("in a profile: got %q", got)
	}
}
