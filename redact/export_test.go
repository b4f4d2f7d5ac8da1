package redact

// NewRules builds the rules, for benchmarks.
func NewRules() { newRuleset(append(append(vendorRules(), contextRules()...), assignmentRules()...)) }

// Work returns how many units a search of a text takes, and its limit.
func Work(text []byte) (spent, limit int) {
	w := newWork(len(text))
	New().find(text, w)
	return w.limit - w.left, w.limit
}

// Anchors returns the anchors of all rules.
func Anchors() []string {
	seen := map[string]bool{}
	var words []string
	for _, r := range append(append(vendorRules(), contextRules()...), assignmentRules()...) {
		for _, word := range r.anchors {
			if !seen[word] {
				seen[word] = true
				words = append(words, word)
			}
		}
	}
	return words
}
