package server

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/internal/lazyregexp"
	"github.com/airlock-mcp/airlock/internal/strictjson"
)

// paramsOf returns the value into which the SDK decodes the params of a request, and the members that they must have.
// The value is nil if the method is unknown.
func paramsOf(method string) (params any, required []string) {
	switch method {
	case "initialize":
		return &mcp.InitializeParams{}, nil
	case "ping":
		return &mcp.PingParams{}, nil
	case "tools/list":
		return &mcp.ListToolsParams{}, nil
	case "tools/call":
		return &mcp.CallToolParamsRaw{}, []string{"name"}
	case "prompts/list":
		return &mcp.ListPromptsParams{}, nil
	case "prompts/get":
		return &mcp.GetPromptParams{}, []string{"name"}
	case "resources/list":
		return &mcp.ListResourcesParams{}, nil
	case "resources/templates/list":
		return &mcp.ListResourceTemplatesParams{}, nil
	case "resources/read":
		return &mcp.ReadResourceParams{}, []string{"uri"}
	case "resources/subscribe":
		return &mcp.SubscribeParams{}, []string{"uri"}
	case "resources/unsubscribe":
		return &mcp.UnsubscribeParams{}, []string{"uri"}
	case "subscriptions/listen":
		return &mcp.SubscriptionsListenParams{}, []string{"notifications"}
	case "completion/complete":
		return &mcp.CompleteParams{}, []string{"ref", "argument"}
	case "logging/setLevel":
		//lint:ignore SA1019 hosts of these revisions may set it
		return &mcp.SetLoggingLevelParams{}, []string{"level"}
	case MethodGetTask, MethodUpdateTask, MethodCancelTask:
		return &TaskParams{}, nil
	}
	return nil, nil
}

// methodName matches the form of MCP method names: words of letters.
var methodName = lazyregexp.New(`^(?:\$/)?[A-Za-z_]{1,32}(?:[/.\-][A-Za-z_]{1,32}){0,4}$`)

// unnamed returns the answer to a request whose method is not a valid method name, or nil. The
// SDK's answer would repeat the method, which may be a secret.
func unnamed(req *jsonrpc.Request) []byte {
	if methodName.MatchString(req.Method) {
		return nil
	}
	answer, err := jsonrpc.EncodeMessage(&jsonrpc.Response{ID: req.ID,
		Error: &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "the method is not one of MCP"}})
	if err != nil {
		return nil
	}
	return answer
}

// misshapen returns the answer to a request whose params are invalid for its method, or nil if
// they are valid. The SDK's answer would contain the names of Go types.
func misshapen(message jsonrpc.Message) []byte {
	req, ok := message.(*jsonrpc.Request)
	if !ok || !req.IsCall() {
		return nil
	}
	params, required := paramsOf(req.Method)
	if slices.Contains(removedMethods, req.Method) && areSessionless(req.Params) {
		return nil // the SDK answers that there is no such method
	}
	if params == nil || len(req.Params) == 0 && len(required) == 0 {
		return unnamed(req)
	}
	given := []byte(req.Params)
	if len(given) == 0 {
		given = []byte("{}")
	}
	if req.Method == "tools/call" { // the tool reads the arguments
		given = replaced(given, "arguments", func([]byte) []byte { return []byte("{}") })
	}
	text := ""
	if err := strictjson.UnmarshalOpen(given, params); err != nil {
		text = "do not have their form: " + withoutNames(err.Error())
	} else if i := slices.IndexFunc(required, func(name string) bool { return !has(given, name) }); i >= 0 {
		text = fmt.Sprintf("have no %q", required[i])
	} else {
		return nil
	}
	answer, err := jsonrpc.EncodeMessage(&jsonrpc.Response{ID: req.ID, Error: &jsonrpc.Error{
		Code: jsonrpc.CodeInvalidParams, Message: "the params of " + req.Method + " " + text}})
	if err != nil {
		return nil // the SDK answers instead
	}
	return answer
}

// removedMethods are the methods that revisions since Stateless do not have and that have required params.
var removedMethods = []string{"logging/setLevel", "resources/subscribe", "resources/unsubscribe"}

// has reports whether an object has a member with the name.
func has(object []byte, name string) (found bool) {
	strictjson.EachMember(object, maxLevels, func(member, _ []byte) bool {
		found = string(member) == name
		return !found
	})
	return found
}

// quotedName matches a quoted text. memberPath matches the names of members as the protocol has them.
var (
	quotedName = lazyregexp.New(`"(?:[^"\\]|\\.)*"`)
	memberPath = lazyregexp.New(`^"(?:_?[a-z][A-Za-z]{0,24}(?:\[\d+\])?\.?){1,6}"$`)
)

// withoutNames replaces names that the client has chosen, which may be secrets.
func withoutNames(text string) string {
	return quotedName.ReplaceAllStringFunc(text, func(name string) string {
		if memberPath.MatchString(name) {
			return name
		}
		return "a member"
	})
}

// refuseMisshapen answers a POST whose message has invalid params, or an ID that the SDK would
// change. It reports whether it has answered.
func refuseMisshapen(w http.ResponseWriter, body []byte) bool {
	message, err := jsonrpc.DecodeMessage(body)
	if err != nil {
		return false
	}
	answer := refuseID(body)
	if answer == nil {
		answer = misshapen(message)
	}
	if answer == nil {
		return false
	}
	w.Header().Set("Content-Type", "application/json")
	w.Write(answer) // an error means that the client has disconnected
	return true
}

// logLevels are those of MCP 2025-11-25, Logging.
var logLevels = []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

// checkLogLevel refuses unknown log levels, which the SDK accepts.
func checkLogLevel(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		//lint:ignore SA1019 hosts of these revisions may set it
		params, ok := req.GetParams().(*mcp.SetLoggingLevelParams)
		if ok && (params == nil || !slices.Contains(logLevels, string(params.Level))) {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams,
				Message: "the log levels are " + strings.Join(logLevels, ", ")}
		}
		return next(ctx, method, req)
	}
}

// negotiate replaces the revision of an initialize request by the one that its answer will have. The
// SDK keeps the requested one, and compares it with revisions when it answers later requests.
func negotiate(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if params, ok := req.GetParams().(*mcp.InitializeParams); ok && params != nil {
			params.ProtocolVersion = revisionOf(params.ProtocolVersion)
		}
		return next(ctx, method, req)
	}
}

// Revisions returns the protocol revisions of the faces, newest first.
func Revisions() []string {
	list := mcp.SupportedProtocolVersions()
	slices.Sort(list)
	slices.Reverse(list)
	return list
}

// revisionOf returns the revision of a session whose client requests one.
func revisionOf(requested string) string {
	newest := ""
	for _, v := range mcp.SupportedProtocolVersions() {
		if v >= Stateless {
			continue // it has no sessions
		}
		if v == requested {
			return v
		}
		newest = max(newest, v)
	}
	return newest
}
