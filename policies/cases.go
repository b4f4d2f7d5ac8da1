package policies

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/lazyregexp"
	"github.com/airlock-mcp/airlock/internal/nearest"
	"github.com/airlock-mcp/airlock/internal/strictjson"
)

// The words of a case's expectation.
const (
	ExpectAllow = "allow" // it happens
	ExpectAsk   = "ask"   // a person is asked first
	ExpectDeny  = "deny"
)

// Case is one call with the decision that is expected of the rules.
type Case struct {
	Name      string `yaml:"name"`
	Principal string `yaml:"principal"`
	// Groups and PrincipalClaims are what is stated about the principal.
	Groups          []string       `yaml:"groups"`
	PrincipalClaims map[string]any `yaml:"principalClaims"`
	Server          string         `yaml:"server"`
	Tool            string         `yaml:"tool"`
	// Connect is NAME:PORT of a connection. Such a case has no server and no tool.
	Connect string `yaml:"connect"`
	// Claims replace the annotations of the tool, which may be missing in the catalog.
	Claims   *Claims      `yaml:"claims"`
	Settings CaseSettings `yaml:"settings"`
	Input    any          `yaml:"input"`
	Session  CaseSession  `yaml:"session"`
	Expect   string       `yaml:"expect"`
	By       []string     `yaml:"by"` // the IDs of the deciding rules, when they matter
}

// Claims are a tool's annotations in a case.
type Claims struct {
	ReadOnly    *bool `yaml:"readOnly"`
	Destructive *bool `yaml:"destructive"`
	Idempotent  *bool `yaml:"idempotent"`
	OpenWorld   *bool `yaml:"openWorld"`
}

// CaseSettings replace the operator's settings of one tool.
type CaseSettings struct {
	TrustAnnotations bool   `yaml:"trustAnnotations"`
	Allowed          bool   `yaml:"allowed"`
	Denied           bool   `yaml:"denied"`
	Flagged          bool   `yaml:"flagged"`
	Risk             string `yaml:"risk"`
}

// CaseSession is what happened before the call.
type CaseSession struct {
	Calls    int      `yaml:"calls"`
	RunCalls int      `yaml:"runCalls"`
	Servers  []string `yaml:"servers"`
}

// ParseCases reads a case file: YAML, with one key, cases.
func ParseCases(name string, source []byte) ([]Case, error) {
	var file struct {
		Cases []Case `yaml:"cases"`
	}
	in := yaml.NewDecoder(bytes.NewReader(source))
	in.KnownFields(true)
	if err := in.Decode(&file); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("case file %q: %s", name, plainly(err))
	}
	if len(file.Cases) == 0 {
		return nil, fmt.Errorf("case file %q has no cases", name)
	}
	words := []string{ExpectAllow, ExpectAsk, ExpectDeny}
	for i, c := range file.Cases {
		isCall, isConnection := c.Server != "" && c.Tool != "", c.Connect != "" && c.Tool == ""
		if c.Name == "" || isCall == isConnection {
			return nil, fmt.Errorf("case file %q: case %d needs name, server and tool, or name and connect", name, i+1)
		}
		if !slices.Contains(words, c.Expect) {
			return nil, fmt.Errorf("case file %q: case %q expects %q, not one of %s%s", name, c.Name, c.Expect,
				strings.Join(words, ", "), nearest.Hint(c.Expect, words))
		}
	}
	return file.Cases, nil
}

// Messages of the YAML decoder that mention Go types.
var (
	unknownKey = lazyregexp.New(`field (\S+) not found in type .*`)
	wrongKind  = lazyregexp.New(`(?s)cannot construct !!(\w+)( .*)? into .*`)
)

// plainly returns the messages of the YAML decoder without Go types.
func plainly(err error) string {
	var several *yaml.LoadErrors
	if !errors.As(err, &several) {
		return strings.TrimPrefix(err.Error(), "yaml: ")
	}
	known := []string{"name", "principal", "groups", "principalClaims", "server", "tool",
		"connect", "claims", "settings", "input", "session", "expect", "by"}
	complaints := make([]string, len(several.Errors))
	for i, one := range several.Errors {
		text := wrongKind.ReplaceAllString(one.Message, "a $1$2 does not belong here")
		if key := unknownKey.FindStringSubmatch(text); key != nil {
			text = fmt.Sprintf("there is no key %q%s", key[1], nearest.Hint(key[1], known))
		}
		complaints[i] = fmt.Sprintf("line %d: %s", one.Mark.Line, text)
	}
	return strings.Join(complaints, "; ")
}

// Run decides the case and returns the decision. It returns an error if the decision is not
// the expected one. tool comes from the catalog; the claims of the case override its
// annotations.
func (c Case) Run(e *Engine, tool catalog.Tool) (Decision, error) {
	d, err := c.decide(e, tool)
	if err != nil {
		return Decision{}, fmt.Errorf("case %q: %w", c.Name, err)
	}
	got := ExpectDeny
	switch {
	case d.Allow && len(d.Approve) > 0:
		got = ExpectAsk
	case d.Allow:
		got = ExpectAllow
	}
	switch {
	case got != c.Expect:
		return d, fmt.Errorf("case %q: got %s, want %s (%s)", c.Name, got, c.Expect,
			strings.Join(slices.Concat(d.Policies(), d.Reasons, d.Errors), "; "))
	case c.By != nil && !slices.Equal(slices.Sorted(slices.Values(d.Policies())), slices.Sorted(slices.Values(c.By))):
		return d, fmt.Errorf("case %q: decided by %q, want %q", c.Name, d.Policies(), c.By)
	}
	return d, nil
}

func (c Case) decide(e *Engine, tool catalog.Tool) (Decision, error) {
	if c.Connect != "" {
		name, port, _ := strings.Cut(c.Connect, ":")
		number, err := strconv.ParseUint(port, 10, 16)
		if err != nil {
			return Decision{}, fmt.Errorf("connect: %q is not NAME:PORT", c.Connect)
		}
		facts, err := c.facts()
		if err != nil {
			return Decision{}, err
		}
		connection := Connection{Principal: c.Principal, Facts: facts, Host: name, Port: uint16(number),
			Session: c.session()}
		if c.Server != "" {
			connection.Principal, connection.Server = c.Server, true
		}
		return e.DecideConnect(connection), nil
	}
	req, err := c.request(tool)
	if err != nil {
		return Decision{}, err
	}
	return e.Decide(req), nil
}

func (c Case) session() Session {
	return Session{Calls: c.Session.Calls, RunCalls: c.Session.RunCalls, Servers: c.Session.Servers}
}

func (c Case) request(tool catalog.Tool) (Request, error) {
	tool.ServerID, tool.Name = c.Server, c.Tool
	if c.Claims != nil {
		tool.Annotations = catalog.Annotations{
			ReadOnlyHint: c.Claims.ReadOnly, DestructiveHint: c.Claims.Destructive,
			IdempotentHint: c.Claims.Idempotent, OpenWorldHint: c.Claims.OpenWorld,
		}
	}
	settings := Settings{
		TrustAnnotations: c.Settings.TrustAnnotations, Allowed: c.Settings.Allowed,
		Denied: c.Settings.Denied,
	}
	if c.Settings.Flagged {
		settings.Flags = []catalog.Flag{{Kind: catalog.FlagInstruction, Field: "description",
			Detail: "the case says so"}}
	}
	if c.Settings.Risk != "" {
		risk, err := ParseRisk(c.Settings.Risk)
		if err != nil {
			return Request{}, err
		}
		settings.Risk = risk
	}
	input, err := c.input()
	if err != nil {
		return Request{}, err
	}
	facts, err := c.facts()
	return Request{
		Principal: c.Principal, Facts: facts, Tool: tool, Settings: settings, Input: input,
		Session: c.session(),
	}, err
}

// facts returns what the case states about its principal.
func (c Case) facts() (f caller.Facts, err error) {
	f.Groups = slices.Compact(slices.Sorted(slices.Values(c.Groups)))
	for name, value := range c.PrincipalClaims {
		if f.Claims == nil {
			f.Claims = map[string]json.RawMessage{}
		}
		if f.Claims[name], err = json.Marshal(value); err != nil {
			return f, fmt.Errorf("its principalClaims.%s cannot be written as JSON", name)
		}
	}
	return f, nil
}

// input brings the arguments into the form in which a call's arrive.
func (c Case) input() (map[string]any, error) {
	if c.Input == nil {
		return map[string]any{}, nil
	}
	text, err := json.Marshal(c.Input)
	if err != nil {
		return nil, errors.New("its input cannot be written as JSON")
	}
	v, err := strictjson.Value(text)
	if err != nil {
		return nil, fmt.Errorf("its input: %w", err)
	}
	input, ok := v.(map[string]any)
	if !ok {
		return nil, errors.New("its input is not a JSON object")
	}
	return input, nil
}
