package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/internal/strictjson"
	"github.com/airlock-mcp/airlock/policies"
)

// rulePairs is half of the number of rules that a decision has to look at.
const rulePairs = 200

// measureDecisions decides on one call by many rules.
func measureDecisions(ctx context.Context, b *bench) error {
	var source strings.Builder
	for i := range rulePairs {
		fmt.Fprintf(&source,
			"@id(\"permit%d\") permit (principal == User::\"user%d\", action == Action::\"files/tool%d\", resource);\n",
			i, i, i)
		fmt.Fprintf(&source, "@id(\"forbid%d\") forbid (principal, action, resource in Server::\"files\")\n"+
			"when { context.input has path && context.input.path like \"/secret%d/*\" };\n", i, i)
	}
	engine, err := policies.Load(policies.File{Name: "many.cedar", Source: []byte(source.String())})
	if err != nil {
		return err
	}
	input, err := strictjson.Value([]byte(`{"path":"/srv/docs/a","head":10}`))
	if err != nil {
		return err
	}
	request := policies.Request{Principal: "user7", Tool: catalog.Tool{ServerID: "files", Name: "tool7"},
		Input: input.(map[string]any)}
	taken, err := inTurn(ctx, b.rounds*10, 0, way{name: "decide", take: func(context.Context) (sample, error) {
		return timed(func() error {
			if decision := engine.Decide(request); !decision.Allow {
				return errors.New("the call was denied")
			}
			return nil
		})
	}})
	if err != nil {
		return err
	}
	b.table.add(newRow(fmt.Sprintf("decision on a call by %d policies", 2*rulePairs), "ms", taken["decide"]))
	return nil
}
