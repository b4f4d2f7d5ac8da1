package approval_test

import (
	"testing"

	"github.com/airlock-mcp/airlock/admission/approval"
)

func TestWorse(t *testing.T) {
	tests := []struct {
		name       string
		a, b, want approval.State
	}{
		{"nothing asked", approval.NotRequired, approval.NotRequired, approval.NotRequired},
		{"approved beats nothing", approval.NotRequired, approval.Approved, approval.Approved},
		{"pending beats approved", approval.Pending, approval.Approved, approval.Pending},
		{"denied beats all", approval.Denied, approval.Pending, approval.Denied},
		{"an unknown state is a denial", "MAYBE", approval.Approved, approval.Denied},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := approval.Worse(test.a, test.b); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
			if got := approval.Worse(test.b, test.a); got != test.want {
				t.Errorf("the other way: got %s, want %s", got, test.want)
			}
		})
	}
}

func TestZeroVerdictIsNo(t *testing.T) {
	if (approval.Verdict{}).Answer != approval.No {
		t.Error("the zero verdict is not no")
	}
}
