package policies

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/cedar-policy/cedar-go"
	"github.com/cedar-policy/cedar-go/x/exp/ast"

	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/internal/nearest"
)

// Problem is one mistake in a policy file or in the operator's settings.
type Problem struct {
	File string `json:"file"` // empty: the configuration
	Line int    `json:"line,omitempty"`
	Text string `json:"text"` // one sentence, with the nearest name if one is similar
	// Warning means that the policy works, and permits or denies something else than it seems to.
	Warning bool `json:"warning,omitempty"`
}

// String is how a compiler shows a mistake.
func (p Problem) String() string {
	if p.Warning {
		p.Text = "warning: " + p.Text
	}
	switch {
	case p.File == "":
		return p.Text
	case p.Line == 0:
		return p.File + ": " + p.Text
	}
	return fmt.Sprintf("%s:%d: %s", p.File, p.Line, p.Text)
}

// Check returns the mistakes in policy files: syntax errors, names that do not exist among
// the servers and tools of the catalog, and conditions that can never match or that fail. A
// rule about a tool that does not exist has no effect, which is dangerous for a forbid. The
// tools of servers that are missing at the moment are not checked. roles are those that @approve can ask.
func Check(files []File, servers []catalog.Server, roles ...string) []Problem {
	if _, err := Load(files...); err != nil {
		return loadProblems(files, err)
	}
	w := newWorld(servers)
	var problems []Problem
	for _, file := range files {
		list, err := parse(file)
		if err != nil {
			continue // Load has seen the same bytes
		}
		for _, policy := range list {
			c := checker{world: w, file: file, policy: policy, roles: roles}
			problems = append(problems, c.check()...)
		}
	}
	return problems
}

func loadProblems(files []File, err error) []Problem {
	var problems []Problem
	for _, file := range files {
		if _, err := Load(file); err != nil {
			problems = append(problems, Problem{File: file.Name, Text: err.Error()})
		}
	}
	if len(problems) == 0 { // only together are they wrong
		problems = append(problems, Problem{Text: err.Error()})
	}
	return problems
}

// CheckOperator looks for tools in the operator's settings that their servers do not have.
func CheckOperator(operator Operator, servers []catalog.Server) []Problem {
	var problems []Problem
	for _, server := range servers {
		if server.Problem != "" {
			continue
		}
		names := make([]string, len(server.Tools))
		for i, tool := range server.Tools {
			names[i] = tool.Name
		}
		settings := operator[server.ID]
		for key, listed := range map[string][]string{
			"allow": settings.Allow, "deny": settings.Deny, "tools": slices.Sorted(maps.Keys(settings.Risks)),
		} {
			for _, name := range listed {
				if name != AllTools && !slices.Contains(names, name) {
					problems = append(problems,
						Problem{Text: fmt.Sprintf(
							"servers.%s.%s: the server has no tool %q%s", server.ID, key, name,
							nearest.Hint(name, names))})
				}
			}
		}
	}
	slices.SortFunc(problems, func(a, b Problem) int { return strings.Compare(a.Text, b.Text) })
	return problems
}

// checker checks one policy.
type checker struct {
	world  *world
	file   File
	policy *cedar.Policy
	roles  []string
	found  []Problem
}

func (c *checker) check() []Problem {
	for key, value := range c.policy.Annotations() {
		c.annotation(string(key), string(value))
	}
	if _, asks := c.policy.Annotations()[keyApprove]; !asks && c.policy.Annotations()[keyPeople] != "" {
		c.problem("@people", `@people needs @approve beside it, such as @approve("owner")`)
	}
	if n := parts(c.policy); n > maxParts {
		c.problem("", "its conditions have %d parts, and no more than %d are looked into: divide it", n, maxParts)
		return c.found
	}
	if action := namedAction(c.policy); action != "" {
		return c.fixed(action)
	}
	refs := referencesOf(c.policy)
	for _, uid := range refs.entities {
		c.entity(uid)
	}
	for _, name := range refs.types {
		c.entityType(name, string(name))
	}
	for _, head := range refs.heads {
		c.head(head)
	}
	if len(c.found) > 0 {
		return c.found // with a wrong head the arguments cannot be checked
	}
	tools := c.world.inScope(refs.scope)
	for _, path := range refs.paths {
		c.path(path, tools)
	}
	for _, compared := range refs.equals {
		c.comparison(compared)
	}
	for _, like := range refs.likes {
		c.pathPattern(like)
	}
	if !slices.ContainsFunc(c.found, func(p Problem) bool { return !p.Warning }) {
		if text, word := typecheck(c.policy, tools, c.world); text != "" {
			c.problem(word, "%s", text)
		}
	}
	return c.found
}

// maxParts bounds the conditions of a policy that is looked into, which takes time
// with the square of them.
const maxParts = 10_000

// parts counts the operators and values of a policy's conditions.
func parts(policy *cedar.Policy) (n int) {
	for _, condition := range (*ast.Policy)(policy.AST()).Conditions {
		ast.Inspect(ast.NewNode(condition.Body), func(ast.IsNode) bool { n++; return true })
	}
	return n
}

func (c *checker) annotation(key, value string) {
	known := []string{keyApprove, keyPeople, keyApproved, "id", "reason", "description"}
	switch problem := (obligation{key, value}).problem(c.roles); {
	case !slices.Contains(known, key):
		c.problem("@"+key, "there is no obligation @%s, so this policy can only deny%s", key, nearest.Hint(key, known))
	case slices.Contains(known[:3], key) && problem != "":
		c.problem("@"+key, "%s", problem)
	case slices.Contains(known[:3], key) && c.policy.Effect() == cedar.Forbid:
		c.problem("@"+key, "@%s on a forbid does nothing: nobody is asked about a forbidden call", key)
	}
}

func (c *checker) entityType(name cedar.EntityType, word string) bool {
	known := []string{string(typeUser), string(typeGroup), string(typeAction), string(typeServer), string(typeTool),
		string(typeResource)}
	if slices.Contains(known, string(name)) {
		return true
	}
	c.problem(word, "there is no entity type %s%s", name, nearest.Hint(string(name), known))
	return false
}

func (c *checker) entity(uid cedar.EntityUID) {
	if !c.entityType(uid.Type, string(uid.Type)+"::") {
		return
	}
	id := string(uid.ID)
	switch uid.Type {
	case typeServer:
		if !slices.Contains(c.world.servers, id) {
			c.problem(uid.String(), "there is no server %q%s", id, nearest.Hint(id, c.world.servers))
		}
	case typeTool, typeAction:
		if (uid.Type == typeAction && id == anyTool) || c.world.hasTool(id) {
			return
		}
		known := slices.Sorted(maps.Keys(c.world.tools))
		if uid.Type == typeAction {
			known = append(known, anyTool)
		}
		c.problem(uid.String(), "there is no tool %q%s", id, nearest.Hint(id, known))
	}
}

func (c *checker) path(path []string, tools []*toolShape) {
	if len(path) < 2 {
		return
	}
	last := path[len(path)-1]
	if path[0] == "context" && (path[1] == "input" || path[1] == "paths") {
		if known, ok := knownArgument(path[2:], tools); !ok {
			c.problem(last, "no tool that this policy can match has the argument %s%s", strings.Join(path[2:], "."),
				nearest.Hint(last, known))
		}
		return
	}
	if path[0] == "principal" && path[1] == "claims" {
		return // the issuer decides which there are
	}
	if known, ok := knownAttribute(path); !ok {
		hint := nearest.Hint(last, known)
		if hint == "" && len(known) > 0 {
			hint = fmt.Sprintf("; %s has %s", strings.Join(path[:len(path)-1], "."), strings.Join(known, ", "))
		}
		c.problem(last, "there is no %s%s", strings.Join(path, "."), hint)
	}
}

// head reports types that a variable of the policy's head can never have.
func (c *checker) head(h headType) {
	is := map[string]cedar.EntityType{"principal": typeUser, "action": typeAction, "resource": typeTool}[h.variable]
	known := []cedar.EntityType{typeUser, typeGroup, typeAction, typeServer, typeTool}
	if !slices.Contains(known, h.name) || h.name == is || h.variable == "resource" && h.within &&
		h.name == typeServer ||
		h.variable == "principal" && h.within && h.name == typeGroup {
		return // unknown types were reported
	}
	how := "is"
	if h.within {
		how = "is in"
	}
	c.problem(string(h.name), "it can never match: %s %s never a %s, it is a %s", h.variable, how, h.name, is)
}

// comparison reports comparisons with texts that a member can never equal: a forbid with such a
// comparison would never match. An unknown server may be added later, so it is reported only if
// its name looks misspelt.
func (c *checker) comparison(compared comparison) {
	name := strings.Join(compared.path, ".")
	var known []string
	switch name {
	case "resource.risk":
		known = riskWords()
	case "resource.server", "context.session.servers":
		known = c.world.servers
	default:
		return
	}
	hint := nearest.Hint(compared.text, known)
	if slices.Contains(known, compared.text) || name != "resource.risk" && hint == "" {
		return
	}
	c.problem(strconv.Quote(compared.text), "%s is never %q%s", name, compared.text, hint)
}

// pathPattern reports a pattern for a directory that is compared with a text as the code wrote it.
func (c *checker) pathPattern(like ast.NodeTypeLike) {
	argument, ok := prefixOfPaths(like)
	if !ok {
		return
	}
	pattern := string(like.Value.MarshalCedar())
	c.problem("like", "context.input.%s like %s also matches paths with `..`; write context.paths.%s, which is "+
		"normalised",
		argument, pattern, argument)
	c.found[len(c.found)-1].Warning = true
}

// problem records a mistake at the first occurrence of the word in the policy.
func (c *checker) problem(word, format string, args ...any) {
	at := c.policy.Position()
	line := at.Line
	if rest := c.file.Source[min(at.Offset, len(c.file.Source)):]; word != "" {
		if i := bytes.Index(rest, []byte(word)); i >= 0 {
			line += bytes.Count(rest[:i], []byte("\n"))
		}
	}
	c.found = append(c.found, Problem{File: c.file.Name, Line: line, Text: fmt.Sprintf(format, args...)})
}
