package policies

import (
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/cedar-policy/cedar-go"
	"github.com/cedar-policy/cedar-go/x/exp/ast"
	"github.com/cedar-policy/cedar-go/x/exp/schema"
	"github.com/cedar-policy/cedar-go/x/exp/schema/validate"
)

// readAction is the action of reading a resource or getting a prompt of a server: `action == Action::"read"`. Rules for
// all actions apply to it too. No tool has this ID, which has no slash.
const readAction = "read"

// typeResource is the entity type of resources and prompts.
const typeResource = cedar.EntityType("Resource")

// readSchema describes the requests for resources and prompts. The name is resource:URI or prompt:NAME. The arguments
// of prompts are not described.
const readSchema = `entity Resource in [Server] = {
  "server": String, "name": String, "risk": String, "allowed": Bool, "denied": Bool, "flagged": Bool,
};
action "read" appliesTo {
  principal: [User], resource: [Resource],
  context: {"input": {"uri"?: String}, "paths": {"uri"?: String}, "session": Session, "elicits": Bool},
};
`

// namesAction reports whether the scope of a policy names an action.
func namesAction(policy *cedar.Policy, id string) bool {
	return slices.ContainsFunc(referencesOf(policy).scope.actions, func(action cedar.EntityUID) bool {
		return action.Type == typeAction && string(action.ID) == id
	})
}

// namedAction returns the action that the scope of a policy names, if it is one without a tool, or "".
func namedAction(policy *cedar.Policy) string {
	for _, id := range []string{connectAction, readAction} {
		if namesAction(policy, id) {
			return id
		}
	}
	return ""
}

// fixedValidator is Cedar's validator for policies about connections, resources and prompts, whose schema is the same
// for all servers.
var fixedValidator = sync.OnceValues(func() (*validate.Validator, error) {
	var s schema.Schema
	if err := s.UnmarshalCedar([]byte(schemaHead + connectSchema + readSchema)); err != nil {
		return nil, err
	}
	resolved, err := s.Resolve()
	if err != nil {
		return nil, err
	}
	return validate.New(resolved), nil
})

// fixed checks a policy whose scope names an action without a tool, with the validator of Cedar.
func (c *checker) fixed(action string) []Problem {
	if len(referencesOf(c.policy).scope.actions) > 1 {
		c.problem(action, `write a separate policy for Action::"%s"`, action)
		return c.found
	}
	validator, err := fixedValidator()
	if err == nil {
		err = validator.Policy("policy", (*ast.Policy)(c.policy.AST()))
	}
	for ; err != nil; err = errors.Unwrap(err) {
		if errors.Unwrap(err) == nil {
			c.problem("", "%s", strings.TrimPrefix(err.Error(), "policy: "))
		}
	}
	return c.found
}
