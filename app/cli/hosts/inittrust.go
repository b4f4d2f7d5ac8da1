package hosts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/airlock-mcp/airlock/app/cli/verb"
	"github.com/airlock-mcp/airlock/app/hosts"
	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/internal/visible"
	"github.com/airlock-mcp/airlock/policies"
)

// shownNames is how many tools a question names.
const shownNames = 5

// askTrust asks, for each server that the plan imports, whether its claims about tools that only read are trusted, and
// adds the answers to the plan. Without a terminal it trusts nothing and prints the setting.
func (v *Init) askTrust(ctx context.Context, s *verb.Streams, plan *hosts.Plan, flags verb.ConfigFlag) error {
	imported := map[string]bool{}
	for _, i := range plan.Imports {
		imported[i.Entry.Name] = true
	}
	if len(imported) == 0 {
		return nil
	}
	// Fresh, because a server without a cached list is otherwise waited for only a short time.
	_, snapshot, err := verb.ToolsFlags{ConfigFlag: flags, Fresh: true}.OpenTools(ctx, s.Err)
	if err != nil {
		return err
	}
	var trusted []string
	for _, server := range snapshot.Servers() {
		if !imported[server.ID] {
			continue
		}
		claims := claimsOf(server)
		if len(claims.destroy) > 0 {
			fmt.Fprint(s.Err, claims.destroying())
		}
		if len(claims.read) == 0 {
			continue
		}
		if !v.asks(s) {
			fmt.Fprintf(s.Err, "airlock: %s; servers.%s.trustAnnotations: true trusts that, and then they are not "+
				"asked about\n", claims.reading(), claims.server)
			continue
		}
		yes, err := v.ask(s, fmt.Sprintf("%s. Trust that, so that they are not asked about? [y/N] ", claims.reading()))
		if err != nil {
			return err
		}
		if yes {
			trusted = append(trusted, server.ID)
		}
	}
	return plan.TrustClaims(trusted)
}

// asks reports whether questions are asked: there is a terminal and no flag that answers them.
func (v *Init) asks(s *verb.Streams) bool {
	in, ok := s.In.(*os.File)
	return ok && !v.Yes && !v.JSON && verb.IsTerminal(in)
}

// ask asks a question that is answered with y or n. The end of the input is a no.
func (v *Init) ask(s *verb.Streams, question string) (bool, error) {
	fmt.Fprint(s.Out, question)
	var answer strings.Builder
	for one := make([]byte, 1); ; { // byte by byte: the rest of the input answers the next question
		n, err := s.In.Read(one)
		if n == 1 && one[0] != '\n' {
			answer.WriteByte(one[0])
		}
		if errors.Is(err, io.EOF) || n == 1 && one[0] == '\n' {
			break
		}
		if err != nil {
			return false, err
		}
	}
	switch strings.ToLower(strings.TrimSpace(answer.String())) {
	case "y", "yes":
		return true, nil
	}
	return false, nil
}

// claims are what a server claims about its tools.
type claims struct {
	server        string // as messages show it
	tools         int
	read, destroy []string // the names of tools that only read, and of those that change or delete
}

func claimsOf(server catalog.Server) claims {
	c := claims{server: visible.Line(verb.OneLine(server.ID, 60)), tools: len(server.Tools)}
	for _, tool := range server.Tools {
		name := visible.Line(verb.OneLine(tool.Name, 60))
		switch policies.EffectiveRisk(tool, policies.Settings{TrustAnnotations: true}) {
		case policies.RiskLow:
			c.read = append(c.read, name)
		case policies.RiskCritical:
			c.destroy = append(c.destroy, name)
		}
	}
	return c
}

// reading is the clause that names the tools which claim to only read.
func (c claims) reading() string {
	return fmt.Sprintf("%s claims that %d of its %s only read (%s)", c.server, len(c.read),
		verb.Counted(c.tools, "tool"), few(c.read))
}

// destroying explains how a tool that claims to be destructive is allowed.
func (c claims) destroying() string {
	return fmt.Sprintf("airlock: %s claims that %s can change or delete what exists (%s). Each call is asked about, "+
		"even with servers.%s.allow; servers.%s.tools: {%s: {risk: write}} lowers the risk\n", c.server,
		verb.Counted(len(c.destroy), "tool"), few(c.destroy), c.server, c.server, c.destroy[0])
}

// few returns the first names of a list.
func few(names []string) string {
	if len(names) > shownNames {
		return strings.Join(names[:shownNames], ", ") + " …"
	}
	return strings.Join(names, ", ")
}
