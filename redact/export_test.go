package redact

// NewRules builds the rules anew, for measuring what that costs.
func NewRules() { newRuleset(append(append(vendorRules(), contextRules()...), assignmentRules()...)) }

// Work returns the units that a search of a text took and may take at most.
func Work(text []byte) (spent, limit int) {
	w := newWork(len(text))
	New().find(text, w)
	return w.spent(), w.limit
}

// Anchors returns the words around which rules are tried.
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
