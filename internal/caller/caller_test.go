package caller

import "testing"

var ann = Caller{Principal: "ann", Kind: User, Issuer: "https://a.example", Session: "ses_1",
	Scopes: []string{ScopeRun}}

func TestNamesOfTwoIssuersDiffer(t *testing.T) {
	local, other := Caller{Principal: "ann"}, ann
	other.Issuer = "https://b.example"
	if local.Name() != "ann" || ann.Name() == other.Name() || ann.Name() == local.Name() {
		t.Errorf("got %q, %q and %q, want three names", local.Name(), ann.Name(), other.Name())
	}
}
