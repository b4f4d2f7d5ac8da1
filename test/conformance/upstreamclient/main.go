// Command upstreamclient is Airlock's upstream client as the client that the
// conformance suite tests: the suite starts it with the address of a server, and with
// the scenario in MCP_CONFORMANCE_SCENARIO.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/airlock-mcp/airlock/broker/upstream"
)

// serverID is the name of the suite's server.
const serverID = "suite"

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) (err error) {
	if len(os.Args) != 2 {
		return errors.New("the only argument is the address of a server")
	}
	scenario := os.Getenv("MCP_CONFORMANCE_SCENARIO")
	if strings.HasPrefix(scenario, "auth/") {
		return signIn(ctx, os.Args[1])
	}
	set, err := upstream.New([]upstream.Config{{ID: serverID, URL: os.Args[1], Elicitation: true}},
		&upstream.Options{Version: "test"})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, set.Close()) }()
	set.Connect(ctx)
	if err := set.Problem(serverID); err != nil {
		return err
	}
	c := client{set: set}
	switch scenario {
	case "initialize", "request-metadata", "json-schema-ref-no-deref":
		return nil // all of it is in connecting, which lists the tools
	case "tools_call":
		return c.call(ctx, "add_numbers", json.RawMessage(`{"a":5,"b":3}`))
	case "http-standard-headers":
		return c.oneOfEach(ctx)
	case "http-custom-headers":
		return c.asTold(ctx)
	case "http-invalid-tool-headers":
		return c.callAll(ctx, json.RawMessage(`{"region":"us-west1"}`))
	case "json-schema-2020-12-preservation":
		return c.echoSchema(ctx)
	}
	// In the others the server answers some calls with what no client may accept.
	return c.callAll(ctx, nil)
}

// client calls the suite's tools.
type client struct{ set *upstream.Set }

func (c client) call(ctx context.Context, tool string, arguments json.RawMessage) error {
	_, err := c.set.CallFor(ctx, agreeable{}, serverID, tool, arguments)
	return err
}

// callAll calls every tool of the server. A refused call or an invalid answer is not a
// failure of the client.
func (c client) callAll(ctx context.Context, arguments json.RawMessage) error {
	for _, tool := range c.set.Servers()[0].Tools {
		if err := c.call(ctx, tool.Name, arguments); err != nil {
			fmt.Fprintln(os.Stderr, "note:", err)
		}
	}
	return nil
}

// asTold makes the calls that the suite asks for.
func (c client) asTold(ctx context.Context) error {
	var told struct {
		Calls []struct {
			Name      string          `json:"name"`
			Arguments json.RawMessage `json:"arguments"`
		} `json:"toolCalls"`
	}
	if err := json.Unmarshal([]byte(os.Getenv("MCP_CONFORMANCE_CONTEXT")), &told); err != nil {
		return fmt.Errorf("reading MCP_CONFORMANCE_CONTEXT: %w", err)
	}
	for _, call := range told.Calls {
		if err := c.call(ctx, call.Name, call.Arguments); err != nil {
			fmt.Fprintln(os.Stderr, "note:", err)
		}
	}
	return nil
}

// echoSchema sends the definition of one tool back, as it is known here.
func (c client) echoSchema(ctx context.Context) error {
	for _, tool := range c.set.Servers()[0].Tools {
		if tool.Name == "json_schema_2020_12_tool" {
			return c.call(ctx, "json_schema_echo", fmt.Appendf(nil, `{"schema":%s}`, tool.InputSchema))
		}
	}
	return errors.New("the server has no tool json_schema_2020_12_tool")
}

// oneOfEach sends one request of each kind that names something.
func (c client) oneOfEach(ctx context.Context) error {
	if err := c.callAll(ctx, nil); err != nil {
		return err
	}
	var resources struct {
		Resources []struct {
			URI string `json:"uri"`
		} `json:"resources"`
	}
	var prompts struct {
		Prompts []struct {
			Name string `json:"name"`
		} `json:"prompts"`
	}
	if err := errors.Join(c.do(ctx, "resources/list", nil, &resources),
		c.do(ctx, "prompts/list", nil, &prompts)); err != nil {
		return err
	}
	for _, r := range resources.Resources {
		if err := c.do(ctx, "resources/read", map[string]any{"uri": r.URI}, nil); err != nil {
			return err
		}
	}
	for _, p := range prompts.Prompts {
		if err := c.do(ctx, "prompts/get", map[string]any{"name": p.Name}, nil); err != nil {
			return err
		}
	}
	return nil
}

func (c client) do(ctx context.Context, method string, params map[string]any, into any) error {
	request := upstream.Request{Method: method}
	if params != nil {
		raw, err := json.Marshal(params)
		if err != nil {
			return err
		}
		request.Params = raw
	}
	raw, err := c.set.Do(ctx, serverID, request)
	if err != nil || into == nil {
		return err
	}
	return json.Unmarshal(raw, into)
}

// agreeable is a person who accepts everything and fills in what the scenarios ask for.
type agreeable struct{}

// Elicit implements upstream.Relay.
func (agreeable) Elicit(_ context.Context, e upstream.Elicitation) (upstream.ElicitationAnswer, error) {
	var form struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	answer := upstream.ElicitationAnswer{Action: "accept"}
	if e.Schema == nil {
		return answer, nil
	}
	if err := json.Unmarshal(e.Schema, &form); err != nil {
		return answer, err
	}
	if _, ok := form.Properties["confirmed"]; ok {
		answer.Content = json.RawMessage(`{"confirmed":true}`)
	}
	return answer, nil
}

// Notify implements upstream.Relay.
func (agreeable) Notify(string, json.RawMessage) {}

func (agreeable) LogLevel() string { return "" }
