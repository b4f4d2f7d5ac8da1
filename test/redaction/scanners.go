package main

import (
	"slices"
	"strings"

	"github.com/zricethezav/gitleaks/v8/detect"

	"github.com/airlock-mcp/airlock/redact"
)

// personal are the kinds of findings that are not secrets.
var personal = []string{"email", "phone", "card", "iban", "us-ssn", "ip-address"}

// airlock is package redact. It counts only findings of one category: secrets or personal data.
type airlock struct {
	redactor *redact.Redactor
	personal bool
}

// finds reports whether the cleaned text no longer contains the secret of the example.
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

// count returns the findings in a text, by kind.
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

// gitleaks is Gitleaks with its default rules.
type gitleaks struct{ detector *detect.Detector }

func newGitleaks() (gitleaks, error) {
	d, err := detect.NewDetectorDefaultConfig()
	return gitleaks{d}, err
}

// finds reports whether any finding overlaps with any secret of the example.
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
