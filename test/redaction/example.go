package main

import (
	"cmp"
	"regexp"
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

// isSample reports whether the secret was made up for an example: it has a word that shows so, or at least half of it is
// counted up or repeated. It does not use the rules of redact.
func (e example) isSample() bool {
	value := e.longest()
	if sampleWord.MatchString(value) {
		return true
	}
	inRuns, run := 0, 1
	for i := 1; i <= len(value); i++ {
		if i < len(value) && (value[i] == value[i-1] || value[i] == value[i-1]+1 || value[i-1] == '9' && value[i] == '0') {
			run++
			continue
		}
		if run >= minRun {
			inRuns += run
		}
		run = 1
	}
	return inRuns*2 >= len(value)
}

// minRun is the minimum number of counted or repeated characters.
const minRun = 3

var sampleWord = regexp.MustCompile(`(?i)example|sample|placeholder|mock|dummy|test|fake|xxxx|a1b2c3|user:password|` +
	`\{\{resolve:`)

// scanner finds secrets or personal data in examples.
type scanner interface {
	// finds reports whether the secret of an example is found.
	finds(e example) bool
	// flags returns the number of findings in a text.
	flags(text string) int
}
