package rules

import (
	"reflect"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/admission"
	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/policies"
)

// The default limits in docs/configuration.md are the defaults of the broker.
func TestDefaultLimitsAreTheBrokers(t *testing.T) {
	got, want := callLimits(config.Default()), admission.DefaultLimits()
	want.Servers = map[string]admission.ServerLimits{}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestLimitsOfSingleServers(t *testing.T) {
	c := config.Default()
	c.Limits.Calls.Run = 7
	c.Servers = []config.Server{
		{ID: "crm", CallTimeout: time.Second, Settings: config.Settings{
			Rate: config.Rate{Calls: 5, Per: time.Second},
			Tools: map[string]config.Tool{"find": {Rate: config.Rate{Calls: 1, Per: time.Minute}},
				"drop": {Risk: "destructive"}},
		}},
		{ID: "mail", CallTimeout: c.Limits.Calls.Timeout},
	}
	got := callLimits(c)
	if want := (admission.ServerLimits{
		CallTimeout: time.Second, Rate: admission.Rate{Calls: 5, Per: time.Second},
		Tools: map[string]admission.Rate{"find": {Calls: 1, Per: time.Minute}},
	}); got.Calls != 7 || !reflect.DeepEqual(got.Servers["crm"], want) {
		t.Errorf("got %+v, want 7 calls and %+v", got, want)
	}
	if own := got.Servers["mail"]; own.CallTimeout != 0 || own.Rate.Calls != 0 || len(own.Tools) != 0 {
		t.Errorf("a server like all others: got %+v, want nothing of its own", own)
	}
	c.Kernel.Actions = map[string]config.Action{"database_query": {Server: c.Servers[0].ID, Tool: "find", SQL: "q"}}
	operator, err := operatorSettings(c)
	if err != nil {
		t.Fatal(err)
	}
	// A tool that only has a rate is known to the policies, whose check finds misspelt names.
	if want := map[string]policies.Risk{"find": policies.RiskUnknown,
		"drop": policies.RiskCritical}; !reflect.DeepEqual(operator["crm"].Risks, want) {
		t.Errorf("risks: got %v, want %v", operator["crm"].Risks, want)
	}
	if sql := operator.Settings("crm", "find", nil).SQL; !reflect.DeepEqual(sql, []string{"q"}) {
		t.Errorf("SQL: got %v, want the parameter of the kernel's action", sql)
	}
}
