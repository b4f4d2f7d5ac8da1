package redact

import (
	"github.com/airlock-mcp/airlock/internal/lazyregexp"
)

// isMisshapen reports whether a value resembles the tokens of a vendor but cannot be one: it is too
// short or too long, or has a character that they never have. Only vendors whose format is known
// for certain are listed. If scanners disagree about a format, a value that almost matches it
// counts as a token.
func isMisshapen(value []byte) bool {
	for _, shape := range shapes {
		if shape.like.Match(value) {
			return !shape.form.Match(value)
		}
	}
	return false
}

// shapes has, for each vendor, an expression for values that resemble its tokens and one for their
// exact format.
var shapes = []struct{ like, form *lazyregexp.Regexp }{
	// Telegram: number of the bot, secret
	{compile(`^\d{3,20}:A[A-Za-z0-9_\-]{8,}$`), compile(`^\d{5,16}:A[A-Za-z0-9_\-]{34}$`)},
	{compile(`^xox[abcprs]-`), compile(`^xox[a-z]-(?:[A-Za-z0-9]+-)*[A-Za-z0-9]{8,}$`)}, // Slack
	{compile(`^v1\.0-[0-9a-f]{16,}-`), compile(`^v1\.0-[0-9a-f]{24}-[0-9a-f]{146}$`)},   // Cloudflare, keys for origins
	{compile(`^xapp-\d`), compile(`(?i)^xapp-\d{1,5}-[A-Z0-9]+-\d+-[a-z0-9]{64}`)},
	{compile(`^6L[a-z][A-Za-z0-9_\-]{20,}$`), compile(`^6L[A-Za-z0-9_\-]{38}$`)}, // reCAPTCHA
	{compile(`^dapi[0-9a-z]{16,}$`), compile(`^dapi[0-9a-f]{32}$`)},              // Databricks
}
