package main

import (
	"cmp"
	"slices"
	"strings"
)

// example is a text that a scanner publishes, with the secrets in it.
type example struct {
	Name    string   `json:"name"`
	Text    string   `json:"text"`
	Secrets []string `json:"secrets"` // found by its scanner; empty for a negative
}

// set is the examples of one source.
type set struct {
	name     string
	personal bool // the examples are of personal data, not of secrets
	examples []example
}

// unique removes duplicate examples.
func unique(examples []example) []example {
	seen := map[string]bool{}
	return slices.DeleteFunc(examples, func(e example) bool {
		again := seen[e.Text] || strings.TrimSpace(e.Text) == ""
		seen[e.Text] = true
		return again
	})
}

// longest returns the longest of the secrets. The others are identifiers that the scanner reports
// with it.
func (e example) longest() string {
	return slices.MaxFunc(e.Secrets, func(a, b string) int { return cmp.Compare(len(a), len(b)) })
}

// scanner finds secrets or personal data in examples.
type scanner interface {
	// finds reports whether the secret of an example is found.
	finds(e example) bool
	// flags returns the number of findings in a text.
	flags(text string) int
}
