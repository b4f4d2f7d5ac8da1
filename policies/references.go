package policies

import (
	"slices"

	"github.com/cedar-policy/cedar-go"
	"github.com/cedar-policy/cedar-go/x/exp/ast"
)

// references are the entities, types and members that a policy names.
type references struct {
	entities []cedar.EntityUID  // in order of appearance
	types    []cedar.EntityType // after `is`
	paths    [][]string         // such as context, input, path
	equals   []comparison       // with a literal text
	likes    []ast.NodeTypeLike
	scope    scope
	heads    []headType
}

// headType is a type that a policy's head demands of a variable.
type headType struct {
	variable string
	name     cedar.EntityType
	within   bool // the variable is, or is in, an entity of that type
}

// comparison is a member that a policy compares with a text.
type comparison struct {
	path []string
	text string
}

// scope is which tools a policy's head can match; nil lists match all.
type scope struct {
	actions  []cedar.EntityUID // one of these, or in it
	exactly  bool              // == and not in
	resource *cedar.EntityUID  // this, or in it
}

func referencesOf(policy *cedar.Policy) references {
	p := (*ast.Policy)(policy.AST())
	var r references
	for i, head := range []ast.IsScopeNode{p.Principal, p.Action, p.Resource} {
		r.head(head)
		r.headTypes([]string{"principal", "action", "resource"}[i], head)
	}
	switch action := p.Action.(type) {
	case ast.ScopeTypeEq:
		r.scope.actions, r.scope.exactly = []cedar.EntityUID{action.Entity}, true
	case ast.ScopeTypeIn:
		r.scope.actions = []cedar.EntityUID{action.Entity}
	case ast.ScopeTypeInSet:
		r.scope.actions = append([]cedar.EntityUID{}, action.Entities...)
	}
	switch resource := p.Resource.(type) {
	case ast.ScopeTypeEq:
		r.scope.resource = &resource.Entity
	case ast.ScopeTypeIn:
		r.scope.resource = &resource.Entity
	case ast.ScopeTypeIsIn:
		r.scope.resource = &resource.Entity
	}
	for _, condition := range p.Conditions {
		ast.Inspect(ast.NewNode(condition.Body), r.node)
	}
	return r
}

// readsSession reports whether a policy reads context.session, or the context as a whole.
func readsSession(policy *cedar.Policy) bool {
	reads := false
	for _, condition := range (*ast.Policy)(policy.AST()).Conditions {
		ast.Inspect(ast.NewNode(condition.Body), func(n ast.IsNode) bool {
			switch n := n.(type) {
			case ast.NodeTypeVariable:
				reads = reads || n.Name == "context"
			case ast.NodeTypeAccess, ast.NodeTypeHas:
				if path := pathOf(n); len(path) == 2 && path[0] == "context" {
					reads = reads || path[1] == "session"
					return false
				}
			}
			return true
		})
	}
	return reads
}

func (r *references) head(head ast.IsScopeNode) {
	switch head := head.(type) {
	case ast.ScopeTypeEq:
		r.entities = append(r.entities, head.Entity)
	case ast.ScopeTypeIn:
		r.entities = append(r.entities, head.Entity)
	case ast.ScopeTypeInSet:
		r.entities = append(r.entities, head.Entities...)
	case ast.ScopeTypeIs:
		r.types = append(r.types, head.Type)
	case ast.ScopeTypeIsIn:
		r.types = append(r.types, head.Type)
		r.entities = append(r.entities, head.Entity)
	}
}

func (r *references) headTypes(variable string, head ast.IsScopeNode) {
	add := func(name cedar.EntityType, within bool) { r.heads = append(r.heads, headType{variable, name, within}) }
	switch head := head.(type) {
	case ast.ScopeTypeEq:
		add(head.Entity.Type, false)
	case ast.ScopeTypeIn:
		add(head.Entity.Type, true)
	case ast.ScopeTypeInSet:
		for _, entity := range head.Entities {
			add(entity.Type, true)
		}
	case ast.ScopeTypeIs:
		add(head.Type, false)
	case ast.ScopeTypeIsIn:
		add(head.Type, false)
		add(head.Entity.Type, true)
	}
}

func (r *references) node(n ast.IsNode) bool {
	switch n := n.(type) {
	case ast.NodeValue:
		if uid, ok := n.Value.(cedar.EntityUID); ok {
			r.entities = append(r.entities, uid)
		}
	case ast.NodeTypeEquals:
		r.comparison(n.BinaryNode)
	case ast.NodeTypeNotEquals:
		r.comparison(n.BinaryNode)
	case ast.NodeTypeContains:
		r.comparison(n.BinaryNode)
	case ast.NodeTypeContainsAll:
		r.comparisons(n.BinaryNode)
	case ast.NodeTypeContainsAny:
		r.comparisons(n.BinaryNode)
	case ast.NodeTypeLike:
		r.likes = append(r.likes, n)
	case ast.NodeTypeIs:
		r.types = append(r.types, n.EntityType)
	case ast.NodeTypeIsIn:
		r.types = append(r.types, n.EntityType)
	case ast.NodeTypeAccess, ast.NodeTypeHas:
		if path := pathOf(n); path != nil {
			r.paths = append(r.paths, path)
		}
	}
	return true
}

func (r *references) comparison(n ast.BinaryNode) {
	for _, sides := range [][2]ast.IsNode{{n.Left, n.Right}, {n.Right, n.Left}} {
		value, isValue := sides[1].(ast.NodeValue)
		path := pathOf(sides[0])
		if text, isText := value.Value.(cedar.String); isValue && isText && path != nil {
			r.equals = append(r.equals, comparison{path, string(text)})
		}
	}
}

// comparisons is comparison with each element of a literal set.
func (r *references) comparisons(n ast.BinaryNode) {
	if set, ok := n.Right.(ast.NodeTypeSet); ok {
		for _, element := range set.Elements {
			r.comparison(ast.BinaryNode{Left: n.Left, Right: element})
		}
	}
}

// pathOf returns the names from a variable to a member. It returns nil if the member is of something
// else, such as a set, and if there are more than maxNested names.
func pathOf(n ast.IsNode) (path []string) {
	for range maxNested {
		switch at := n.(type) {
		case ast.NodeTypeVariable:
			path = append(path, string(at.Name))
			slices.Reverse(path)
			return path
		case ast.NodeTypeAccess:
			path, n = append(path, string(at.Value)), at.Arg
		case ast.NodeTypeHas:
			path, n = append(path, string(at.Value)), at.Arg
		default:
			return nil
		}
	}
	return nil
}
