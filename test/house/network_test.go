package house_test

import (
	"go/ast"
	"slices"
	"strings"
	"testing"
)

// dialing are the names that open connections or resolve names, by package.
var dialing = map[string][]string{
	"net": {"Dial", "DialTimeout", "DialTCP", "DialUDP", "DialIP", "Dialer", "Resolver", "DefaultResolver",
		"LookupHost", "LookupIP", "LookupAddr",
		"ResolveTCPAddr", "ResolveUDPAddr", "ResolveIPAddr"},
	"http": {"Get", "Head", "Post", "PostForm", "DefaultClient", "DefaultTransport"},
	"tls":  {"Dial", "DialWithDialer", "Dialer"},
	"smtp": {"Dial", "SendMail"},
	"rpc":  {"Dial", "DialHTTP"},
	"grpc": {"Dial", "DialContext", "NewClient"},
}

// socketDialers may use net.Dialer: they connect to unix sockets only.
var socketDialers = []string{"runner/ctrd/daemon.go"}

// Connections to other machines are opened by internal/reach alone, which checks the address that is connected to. A
// name that another package checks can resolve to another address when it is connected to (issue 23).
func TestOnlyOnePackageDials(t *testing.T) {
	dials := 0
	for _, f := range project(t) {
		if f.directory == "internal/reach" || f.isTest || strings.HasPrefix(f.path, "test/") ||
			strings.HasPrefix(f.path, "internal/testenv/") {
			continue
		}
		unix := map[ast.Node]bool{} // the functions of calls whose first argument is the network of unix sockets
		ast.Inspect(f.syntax, func(node ast.Node) bool {
			switch node := node.(type) {
			case *ast.CallExpr:
				if network, ok := first(node.Args).(*ast.BasicLit); ok && strings.HasPrefix(network.Value, `"unix`) {
					unix[node.Fun] = true
				}
			case *ast.CompositeLit:
				if isSelector(node.Type, "http", "Transport") {
					t.Errorf("%s: an http.Transport opens connections itself: use reach.NewTransport", f.at(node))
				}
				if isSelector(node.Type, "http", "Client") && !sets(node, "Transport") {
					t.Errorf("%s: an http.Client without a Transport uses the default one: use reach.NewTransport",
						f.at(node))
				}
			case *ast.SelectorExpr:
				ident, ok := node.X.(*ast.Ident)
				if !ok || !slices.Contains(dialing[ident.Name], node.Sel.Name) {
					break
				}
				dials++
				if !unix[node] && !slices.Contains(socketDialers, f.path) {
					t.Errorf("%s: %s.%s opens connections or resolves names: use internal/reach", f.at(node),
						ident.Name, node.Sel.Name)
				}
			}
			return true
		})
	}
	if dials == 0 {
		t.Error("found nothing that dials a unix socket: the names that are looked for are wrong")
	}
}

func first(list []ast.Expr) ast.Expr {
	if len(list) == 0 {
		return nil
	}
	return list[0]
}

// sets reports whether a composite literal sets a field.
func sets(literal *ast.CompositeLit, field string) bool {
	return slices.ContainsFunc(literal.Elts, func(e ast.Expr) bool {
		pair, ok := e.(*ast.KeyValueExpr)
		return ok && isIdent(pair.Key, field)
	})
}
