package admission

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/airlock-mcp/airlock/admission/agents"
	"github.com/airlock-mcp/airlock/internal/canon"
	"github.com/airlock-mcp/airlock/internal/lazyregexp"
	"github.com/airlock-mcp/airlock/internal/strictjson"
)

// Limits of one request.
const (
	maxRequest      = 1 << 20 // size of the JSON of an action in bytes
	maxConversation = 256     // length of a conversation's name in bytes
	maxIntent       = 4 << 10
	maxStep         = 1 << 31
)

// Action is an action that an agent announces. Its members have the order of canonical JSON, which makes the
// fingerprint cheaper.
type Action struct {
	Type       string          `json:"action_type"`
	Code       string          `json:"code"`
	Parameters json.RawMessage `json:"parameters"` // an object in canonical form, or null
	Query      string          `json:"query"`
	Target     string          `json:"target"`
}

// Fingerprint returns the digest of an action. Equal actions have equal digests, however their JSON
// was written.
func (a Action) Fingerprint() (string, error) { return digest(a) }

// fingerprintOn returns the digest of an action on a state of the world.
func (a Action) fingerprintOn(state string) (string, error) {
	return digest(struct {
		Action
		State string `json:"pre_action_state_hash"`
	}{a, state})
}

func digest(v any) (string, error) {
	raw, err := canon.Marshal(v)
	if err != nil {
		return "", err
	}
	return canon.Digest(raw), nil
}

// actionMembers are the permitted members of the JSON of an action.
var actionMembers = []string{"type", "query", "code", "target", "parameters"}

// ParseAction parses the JSON of an action. The error is an *Error.
func ParseAction(raw []byte) (Action, error) {
	if len(raw) > maxRequest {
		return Action{}, refuse(CodeAction, "the action has %d bytes, and %d are allowed", len(raw), maxRequest)
	}
	members, err := members(raw, actionMembers)
	if err != nil {
		return Action{}, refuse(CodeAction, "action: %s", err)
	}
	a := Action{Parameters: json.RawMessage("null")}
	for name, field := range map[string]*string{"type": &a.Type, "query": &a.Query, "code": &a.Code,
		"target": &a.Target} {
		value, there := members[name]
		if !there || value == nil && name != "type" {
			continue
		}
		text, ok := value.(string)
		if !ok {
			return Action{}, refuse(CodeAction, "action.%s is not a string", name)
		}
		*field = text
	}
	if a.Type == "" {
		return Action{}, refuse(CodeAction, "action.type is missing or empty")
	}
	if parameters := members["parameters"]; parameters != nil {
		if a.Parameters, err = canonical(parameters); err != nil {
			return Action{}, refuse(CodeAction, "action.parameters: %s", err)
		}
	}
	return a, nil
}

// members decodes an object and returns an error if it has unknown members.
func members(raw []byte, known []string) (map[string]any, error) {
	if len(raw) == 0 {
		return nil, fmt.Errorf("it is missing")
	}
	value, err := strictjson.Value(raw)
	if err != nil {
		return nil, err
	}
	object, ok := value.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("it is not an object")
	}
	for name := range object {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("there is no member %q, only %s", name, strings.Join(known, ", "))
		}
	}
	return object, nil
}

// canonical returns parameters in the form of RFC 8785. Numbers in that form are doubles, so a
// number that no double represents exactly is an error: it would equal another one.
func canonical(parameters any) (json.RawMessage, error) {
	object, ok := parameters.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("they are not an object")
	}
	if err := checkNumbers(object); err != nil {
		return nil, err
	}
	return canon.Marshal(object)
}

func checkNumbers(value any) error {
	switch v := value.(type) {
	case map[string]any:
		for _, member := range v {
			if err := checkNumbers(member); err != nil {
				return err
			}
		}
	case []any:
		for _, item := range v {
			if err := checkNumbers(item); err != nil {
				return err
			}
		}
	case json.Number:
		if !isDouble(string(v)) {
			return fmt.Errorf("the number %s has more digits than JSON readers keep: give it as a string", v)
		}
	}
	return nil
}

// isDouble reports whether the shortest text of the nearest double is the same number. It takes linear time: the
// numbers are compared by their digits.
func isDouble(text string) bool {
	double, err := strconv.ParseFloat(text, 64)
	return err == nil && decimalOf(text) == decimalOf(strconv.FormatFloat(double, 'e', -1, 64))
}

// decimal is a number: its digits without zeros at the ends, and the exponent of the last digit.
type decimal struct {
	negative bool
	digits   string
	exponent int
}

// decimalOf reads a number of JSON.
func decimalOf(text string) decimal {
	text, negative := strings.CutPrefix(strings.ToLower(text), "-")
	mantissa, power, _ := strings.Cut(text, "e")
	exponent, _ := strconv.Atoi(power) // schema.Decode bounds it; none is 0
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimRight(whole+fraction, "0")
	exponent += len(whole) - len(digits)
	if digits = strings.TrimLeft(digits, "0"); digits == "" {
		return decimal{}
	}
	return decimal{negative, digits, exponent}
}

// Context is the position of an action in a conversation.
type Context struct {
	Conversation string
	Step         int64
	Intent       string
	StateHash    string // of the world before the action; may be empty
	StateSource  string
}

var contextMembers = []string{"conversation_id", "step_number", "user_intent", "pre_action_state_hash", "state_source"}

// stateSources are the known methods of computing a state's hash.
var stateSources = []string{"file_tree", "db_snapshot", "conversation_digest", "git_tree", "custom"}

var stateHash = lazyregexp.New(`\A[0-9a-f]{64}\z`)

// ParseContext parses the JSON of a context. The error is an *Error.
func ParseContext(raw []byte) (Context, error) {
	if len(raw) > maxRequest {
		return Context{}, refuse(CodeContext, "the context has %d bytes, and %d are allowed", len(raw), maxRequest)
	}
	m, err := members(raw, contextMembers)
	if err != nil && len(raw) == 0 {
		return Context{}, refuse(CodeConversation, "context.conversation_id is missing")
	}
	if err != nil {
		return Context{}, refuse(CodeContext, "context: %s", err)
	}
	c := Context{}
	if c.Conversation, err = conversation(m["conversation_id"]); err != nil {
		return c, err
	}
	if c.Step, err = step(m["step_number"]); err != nil {
		return c, err
	}
	if intent, there := m["user_intent"]; there && intent != nil {
		text, ok := intent.(string)
		if !ok || len(text) > maxIntent {
			return c, refuse(CodeContext, "context.user_intent is not a string of at most %d bytes", maxIntent)
		}
		c.Intent = text
	}
	return c, c.readState(m)
}

func conversation(value any) (string, error) {
	text, ok := value.(string)
	switch {
	case value == nil || ok && strings.TrimSpace(text) == "":
		return "", refuse(CodeConversation, "context.conversation_id is missing or empty")
	case !ok:
		return "", refuse(CodeConversation, "context.conversation_id is not a string")
	case len(text) > maxConversation:
		return "", refuse(CodeConversation, "context.conversation_id is longer than %d bytes", maxConversation)
	case strings.ContainsFunc(text, agents.IsControl):
		return "", refuse(CodeConversation, "context.conversation_id has control characters")
	}
	return text, nil
}

func step(value any) (int64, error) {
	number, ok := value.(json.Number)
	if !ok {
		return 0, refuse(CodeStep, "context.step_number is not an integer of 1 or more")
	}
	n, err := strconv.ParseInt(string(number), 10, 64)
	if err != nil || n < 1 || n > maxStep {
		return 0, refuse(CodeStep, "context.step_number %s is not an integer from 1 to %d", number, int64(maxStep))
	}
	return n, nil
}

func (c *Context) readState(m map[string]any) error {
	hash, source := m["pre_action_state_hash"], m["state_source"]
	if hash == nil && source == nil {
		return nil
	}
	if hash == nil || source == nil {
		return refuse(CodeStatePair,
			"context.pre_action_state_hash and context.state_source belong together: give both or neither")
	}
	text, ok := hash.(string)
	if !ok || !stateHash.MatchString(text) {
		return refuse(CodeStateHash, "context.pre_action_state_hash is not 64 lower-case hexadecimal digits (SHA-256)")
	}
	word, ok := source.(string)
	if !ok || !slices.Contains(stateSources, word) {
		return refuse(CodeStateSource, "context.state_source is not one of %s", strings.Join(stateSources, ", "))
	}
	c.StateHash, c.StateSource = text, word
	return nil
}
