package main

import (
	"slices"
	"strings"

	"github.com/zricethezav/gitleaks/v8/detect"

	"github.com/airlock-mcp/airlock/broker/redact"
)

// personal are the kinds of findings that are no secrets.
var personal = []string{"email", "phone", "card", "iban", "us-ssn", "ip-address"}

// airlock is broker/redact.
type airlock struct{ redactor *redact.Redactor }

func newAirlock() airlock { return airlock{redact.New()} }

// finds asks that nothing of the secret stands in the cleaned text as it was.
func (a airlock) finds(e example) bool {
	cleaned, _ := a.redactor.Bytes([]byte(e.Text))
	return a.flags(e.Text) > 0 && strings.Count(string(cleaned), e.longest()) == 0
}

func (a airlock) flags(text string) int {
	secrets, _ := a.count(text)
	n := 0
	for _, count := range secrets {
		n += count
	}
	return n
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
