package main

import (
	"cmp"
	"slices"
	"strings"
)

// example is one text that a scanner publishes with what is in it.
type example struct {
	Name    string   `json:"name"`
	Text    string   `json:"text"`
	Secrets []string `json:"secrets"` // what its scanner finds in the text; none for a negative
}

// set is the examples of one source.
type set struct {
	name     string
	personal bool // its examples are of personal data, and not of secrets
	examples []example
}

// unique drops examples that are there twice.
func unique(examples []example) []example {
	seen := map[string]bool{}
	return slices.DeleteFunc(examples, func(e example) bool {
		again := seen[e.Text] || strings.TrimSpace(e.Text) == ""
		seen[e.Text] = true
		return again
	})
}

// longest is the secret itself, where an identifier is named along with it.
func (e example) longest() string {
	return slices.MaxFunc(e.Secrets, func(a, b string) int { return cmp.Compare(len(a), len(b)) })
}

// scanner finds what the examples of a set are of.
type scanner interface {
	// finds says whether what is in the example is found.
	finds(e example) bool
	// flags returns how many findings there are in a text.
	flags(text string) int
}
