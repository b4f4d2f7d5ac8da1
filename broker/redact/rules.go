package redact

import (
	"bytes"
	"regexp"
)

// rule finds one kind of value. Group 1 of the expression, where it has one, is
// what is removed; otherwise the whole match.
type rule struct {
	kind string
	// words: at least one must be in the text for the expression to be tried.
	// Empty: always. They are compared as they are, or without case when fold is set.
	words []string
	fold  bool
	re    *regexp.Regexp
	// check, where set, decides on a match that has the right form.
	check func(match []byte) bool
}

// rules are tried in this order. Sources are the formats that vendors publish.
var rules = []rule{
	{kind: "private-key", words: []string{"PRIVATE KEY"}, re: regexp.MustCompile(`-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----(?s:.*?)(?:-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|\z)`)},
	{kind: "age-key", words: []string{"AGE-SECRET-KEY-"}, re: regexp.MustCompile(`AGE-SECRET-KEY-1[0-9A-Z]{58}`)},
	{kind: "aws-access-key", words: []string{"AKIA", "ASIA"}, re: regexp.MustCompile(`\b(?:AKIA|ASIA)[A-Z2-7]{16}\b`)},
	{kind: "aws-secret-key", words: []string{"aws"}, fold: true, re: regexp.MustCompile(`(?i)aws[a-z0-9_ .\-]{0,20}(?:secret|key)[a-z0-9_ .\-]{0,20}["']?\s{0,5}(?:[:=]|=>|,)\s{0,5}["']?([A-Za-z0-9/+]{40})(?:[^A-Za-z0-9/+]|$)`), check: mixed},
	{kind: "github-token", words: []string{"gh", "github_pat_"}, re: regexp.MustCompile(`\b(?:gh[pousr]_[A-Za-z0-9]{36,255}|github_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{59})\b`)},
	{kind: "gitlab-token", words: []string{"gl"}, re: regexp.MustCompile(`\b(?:glpat|gldt|glrt|glcbt|glptt|glsoat)-[A-Za-z0-9_\-]{20,}`)},
	{kind: "slack-token", words: []string{"xox", "xapp-"}, re: regexp.MustCompile(`\b(?:xox[abeoprs]-[A-Za-z0-9\-]{10,250}|xapp-\d-[A-Z0-9]+-\d+-[a-f0-9]{32,})`)},
	{kind: "slack-webhook", words: []string{"hooks.slack.com"}, re: regexp.MustCompile(`https://hooks\.slack\.com/(?:services|workflows|triggers)/([A-Za-z0-9+/]{30,80})`)},
	{kind: "google-api-key", words: []string{"AIza"}, re: regexp.MustCompile(`\bAIza[0-9A-Za-z_\-]{35}`)},
	{kind: "google-oauth-token", words: []string{"ya29."}, re: regexp.MustCompile(`\bya29\.[0-9A-Za-z_\-]{20,}`)},
	{kind: "stripe-key", words: []string{"k_live_", "k_test_", "whsec_"}, re: regexp.MustCompile(`\b(?:[rs]k_(?:live|test)_[0-9A-Za-z]{16,}|whsec_[0-9A-Za-z]{24,})`)},
	{kind: "anthropic-key", words: []string{"sk-ant-"}, re: regexp.MustCompile(`\bsk-ant-[a-z0-9]{3,10}-[A-Za-z0-9_\-]{24,}`)},
	{kind: "openai-key", words: []string{"sk-"}, re: regexp.MustCompile(`\bsk-(?:(?:proj|svcacct|admin|None)-[A-Za-z0-9_\-]{20,}|[A-Za-z0-9]{20}T3BlbkFJ[A-Za-z0-9]{20}|[A-Za-z0-9]{48})`)},
	{kind: "npm-token", words: []string{"npm_"}, re: regexp.MustCompile(`\bnpm_[A-Za-z0-9]{36}\b`)},
	{kind: "pypi-token", words: []string{"pypi-"}, re: regexp.MustCompile(`\bpypi-AgE[A-Za-z0-9_\-]{50,}`)},
	{kind: "huggingface-token", words: []string{"hf_"}, re: regexp.MustCompile(`\bhf_[A-Za-z]{34}\b`)},
	{kind: "sendgrid-key", words: []string{"SG."}, re: regexp.MustCompile(`\bSG\.[A-Za-z0-9_\-]{22}\.[A-Za-z0-9_\-]{43}`)},
	{kind: "digitalocean-token", words: []string{"_v1_"}, re: regexp.MustCompile(`\bdo[por]_v1_[a-f0-9]{64}\b`)},
	{kind: "jwt", words: []string{"eyJ"}, re: regexp.MustCompile(`\beyJ[A-Za-z0-9_\-]{10,}\.eyJ[A-Za-z0-9_\-]{6,}\.[A-Za-z0-9_\-]{10,}`)},
	{kind: "url-password", words: []string{"://"}, re: regexp.MustCompile(`\b[A-Za-z][A-Za-z0-9+.\-]{1,20}://[^/\s:@"'<>]{0,256}:([^/\s:@"'<>]{3,256})@`), check: noPlaceholder},
	{kind: "authorization", words: []string{"bearer", "basic"}, fold: true, re: regexp.MustCompile(`(?i)\bauthorization["']?\s{0,5}[:=]\s{0,5}["']?(?:bearer|basic)\s+([A-Za-z0-9._~+/\-]{16,}={0,2})`)},
	{kind: "email", words: []string{"@"}, re: regexp.MustCompile(`\b[A-Za-z0-9][A-Za-z0-9._%+\-]{0,63}@(?:[A-Za-z0-9](?:[A-Za-z0-9\-]{0,61}[A-Za-z0-9])?\.){1,8}[A-Za-z]{2,24}\b`), check: isEmail},
	{kind: "card", re: regexp.MustCompile(`\b[2-6]\d{3}(?:[ \-]?\d){8,15}\b`), check: isCard},
	{kind: "iban", re: regexp.MustCompile(`\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]){11,30}\b`), check: isIBAN},
	{kind: "us-ssn", words: []string{"-"}, re: regexp.MustCompile(`\b\d{3}-\d{2}-\d{4}\b`), check: isSSN},
}

// findRules applies every rule whose words are in the text.
func findRules(text []byte) []span {
	var spans []span
	var folded []byte
	for _, r := range rules {
		in := text
		if r.fold {
			if folded == nil {
				folded = bytes.ToLower(text)
			}
			in = folded
		}
		if !hasAny(in, r.words) {
			continue
		}
		spans = append(spans, r.find(text)...)
	}
	return spans
}

func hasAny(text []byte, words []string) bool {
	for _, word := range words {
		if bytes.Contains(text, []byte(word)) {
			return true
		}
	}
	return len(words) == 0
}

func (r rule) find(text []byte) []span {
	var spans []span
	for _, m := range r.re.FindAllSubmatchIndex(text, -1) {
		start, end := m[0], m[1]
		if len(m) > 2 && m[2] >= 0 {
			start, end = m[2], m[3]
		}
		if r.check != nil && !r.check(text[start:end]) {
			continue
		}
		spans = append(spans, span{start, end, r.kind})
	}
	return spans
}
