package main

import (
	"slices"
	"strings"

	"github.com/zricethezav/gitleaks/v8/detect"

	"github.com/airlock-mcp/airlock/redact"
)

// personal are the kinds of findings that are no secrets.
var personal = []string{"email", "phone", "card", "iban", "us-ssn", "ip-address"}

// airlock is redact, of which the findings of one sort count: secrets, or
// personal data.
type airlock struct {
	redactor *redact.Redactor
	personal bool
}

// finds asks that what is in the example no longer stands in the cleaned text.
func (a airlock) finds(e example) bool {
	cleaned, _ := a.redactor.Bytes([]byte(e.Text))
	return a.flags(e.Text) > 0 && strings.Count(string(cleaned), e.longest()) == 0
}

func (a airlock) flags(text string) int {
	secrets, persons := a.count(text)
	if a.personal {
		return total(persons)
	}
	return total(secrets)
}

// count returns what is found in a text, by kind.
func (a airlock) count(text string) (secrets, persons map[string]int) {
	_, findings := a.redactor.Bytes([]byte(text))
	secrets, persons = map[string]int{}, map[string]int{}
	for _, f := range findings {
		if slices.Contains(personal, f.Kind) {
			persons[f.Kind] += f.Count
			continue
		}
		secrets[f.Kind] += f.Count
	}
	return secrets, persons
}

// gitleaks is Gitleaks with the rules that it comes with.
type gitleaks struct{ detector *detect.Detector }

func newGitleaks() (gitleaks, error) {
	d, err := detect.NewDetectorDefaultConfig()
	return gitleaks{d}, err
}

// finds is content with any part of any secret of the example.
func (g gitleaks) finds(e example) bool {
	for _, f := range g.detector.DetectString(e.Text) {
		for _, secret := range e.Secrets {
			if strings.Contains(f.Match, secret) || strings.Contains(secret, f.Secret) {
				return true
			}
		}
	}
	return false
}

func (g gitleaks) flags(text string) int { return len(g.detector.DetectString(text)) }
