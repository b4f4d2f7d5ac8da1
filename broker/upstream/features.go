package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/internal/strictjson"
)

// Methods that use features that are not tools.
const (
	methodReadResource = "resources/read"
	methodGetPrompt    = "prompts/get"
	methodComplete     = "completion/complete"
	methodSubscribe    = "resources/subscribe"
	methodUnsubscribe  = "resources/unsubscribe"
	methodListen       = "subscriptions/listen"
	noticeAcknowledged = "notifications/subscriptions/acknowledged"
)

// featureList is one of the lists of a server beside tools/list.
type featureList struct {
	kind           catalog.Kind
	method, member string
}

// featureLists returns the lists that a server declares to have.
func (s *session) featureLists() []featureList {
	var lists []featureList
	declared := s.client.InitializeResult().Capabilities
	if declared == nil {
		return nil
	}
	if declared.Resources != nil {
		lists = append(lists, featureList{catalog.KindResource, "resources/list", "resources"},
			featureList{catalog.KindTemplate, "resources/templates/list", "resourceTemplates"})
	}
	if declared.Prompts != nil {
		lists = append(lists, featureList{catalog.KindPrompt, "prompts/list", "prompts"})
	}
	return lists
}

// features lists everything but tools. A list that cannot be read is left out with a warning, because the tools of the
// server work without it.
func (s *session) features(ctx context.Context, serverID string) (features []catalog.Tool, warnings []string) {
	about, excluded := catalog.ParseFeatures(serverID, catalog.KindAbout, []json.RawMessage{s.about()})
	features, warnings = append(features, about...), append(warnings, excluded...)
	for _, list := range s.featureLists() {
		items, cut, err := s.items(ctx, list)
		if err != nil {
			warnings = append(warnings, fmt.Sprintf("the %ss of the server are not known: %v", list.kind, err))
			continue
		}
		found, excluded := catalog.ParseFeatures(serverID, list.kind, items)
		features, warnings = append(features, found...), append(warnings, excluded...)
		if cut != "" {
			warnings = append(warnings, fmt.Sprintf("the list of %ss is cut: %s", list.kind, cut))
		}
	}
	return features, warnings
}

// items reads all pages of a list, within the limits of a list of tools.
func (s *session) items(ctx context.Context, list featureList) (items []json.RawMessage, cut string, err error) {
	seen, size := map[string]bool{}, 0
	for cursor, pages := "", 1; ; pages++ {
		raw, err := s.listPage(ctx, list.method, cursor)
		if err != nil {
			return nil, "", err
		}
		var page map[string]json.RawMessage
		var more []json.RawMessage
		if strictjson.UnmarshalOpen(raw, &page) != nil || strictjson.UnmarshalOpen(page[list.member], &more) != nil {
			return nil, "", errors.New("a page does not have the form that MCP requires")
		}
		items, size, cursor = append(items, more...), size+len(raw), ""
		if next := page["nextCursor"]; len(next) > 0 {
			if err := strictjson.UnmarshalOpen(next, &cursor); err != nil {
				return nil, "", errors.New("nextCursor is not a string")
			}
		}
		if cursor == "" {
			return items, "", nil
		}
		if cut := whyCut(cursor, seen, pages, size); cut != "" {
			return items, cut, nil
		}
		seen[cursor] = true
	}
}

// listPage returns one page as it arrived. A server without the method has nothing to list.
func (s *session) listPage(ctx context.Context, method, cursor string) (json.RawMessage, error) {
	params := map[string]json.RawMessage{}
	if cursor != "" {
		raw, err := json.Marshal(cursor)
		if err != nil {
			return nil, err
		}
		params["cursor"] = raw
	}
	return s.fetch(ctx, method, params)
}

// fetch sends a request of Airlock itself and returns the result as it arrived. It is empty if the server does not have
// the method.
func (s *session) fetch(ctx context.Context, method string,
	params map[string]json.RawMessage) (json.RawMessage, error) {
	e := newExchange(nil, nil)
	defer s.tap.forget(e)
	e.method, e.params, e.taken = method, params, true
	err := e.unlessTaken(s.send(withExchange(ctx, e), e))
	got := e.soFar()
	switch {
	case err == nil:
		return got.result, nil
	case got.large:
		return nil, fmt.Errorf("the answer is larger than %d bytes", maxMessage)
	case got.refusal != nil && got.refusal.Code == jsonrpc.CodeMethodNotFound:
		return json.RawMessage("{}"), nil
	case got.refusal != nil:
		return nil, fmt.Errorf("the server refused: %s", foreignText(got.refusal.Message))
	}
	return nil, err
}

// about returns what a server says about itself. Pins compare it, so it exists for each server, and has no version.
func (s *session) about() json.RawMessage {
	about := struct {
		Name         string     `json:"name"`
		Title        string     `json:"title,omitempty"`
		Instructions string     `json:"instructions,omitempty"`
		WebsiteURL   string     `json:"websiteUrl,omitempty"`
		Icons        []mcp.Icon `json:"icons,omitempty"`
	}{Name: "server"}
	result := s.client.InitializeResult()
	about.Instructions = result.Instructions
	if info := result.ServerInfo; info != nil {
		about.Title, about.WebsiteURL, about.Icons = info.Title, info.WebsiteURL, info.Icons
	}
	raw, err := json.Marshal(about)
	if err != nil {
		panic("upstream: texts always have a JSON form")
	}
	return raw
}

// request sets the request with which the feature is used.
func (c *calling) request(name string, arguments json.RawMessage) error {
	use, feature := catalog.SplitUse(name)
	kind, identifier := catalog.SplitFeatureName(feature)
	quoted, err := json.Marshal(identifier)
	if err != nil {
		return err
	}
	switch {
	case use == catalog.UseComplete:
		c.method = methodComplete
		c.params, err = completionParams(kind, quoted, arguments)
		return err
	case use == "" && kind == catalog.KindResource:
		c.method, c.params = methodReadResource, map[string]json.RawMessage{"uri": quoted}
	case use == "" && kind == catalog.KindPrompt:
		c.method, c.params = methodGetPrompt, map[string]json.RawMessage{"name": quoted, "arguments": arguments}
	case use == "" && kind == catalog.KindTool:
		c.method, c.params = methodCallTool, map[string]json.RawMessage{"name": quoted, "arguments": arguments}
	default:
		return fmt.Errorf("a %s is not called", kind)
	}
	return nil
}

// completionParams returns the params of completion/complete for an argument of a prompt or a variable of a template.
func completionParams(kind catalog.Kind, identifier, arguments json.RawMessage) (map[string]json.RawMessage, error) {
	var params map[string]json.RawMessage
	if err := strictjson.UnmarshalOpen(arguments, &params); err != nil {
		return nil, err
	}
	ref := map[string]json.RawMessage{"type": json.RawMessage(`"ref/prompt"`), "name": identifier}
	if kind == catalog.KindTemplate {
		ref = map[string]json.RawMessage{"type": json.RawMessage(`"ref/resource"`), "uri": identifier}
	}
	delete(params, "uri")
	var err error
	params["ref"], err = json.Marshal(ref)
	return params, err
}
