package redact

// NewRules builds the rules anew, for measuring what that costs.
func NewRules() { newRuleset(append(append(vendorRules(), contextRules()...), assignmentRules()...)) }
