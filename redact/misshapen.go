package redact

import (
	"github.com/airlock-mcp/airlock/internal/lazyregexp"
)

// isMisshapen says whether a value is built as one vendor's tokens are and is
// none: it is too short or too long, or has a character that they never have.
// Such a value is no token under whatever name it stands. Vendors are here whose
// form is known for certain: where scanners differ, what is nearly a token counts as one.
func isMisshapen(value []byte) bool {
	for _, shape := range shapes {
		if shape.like.Match(value) {
			return !shape.form.Match(value)
		}
	}
	return false
}

// shapes are what a vendor's tokens look like from afar, and what they are.
var shapes = []struct{ like, form *lazyregexp.Regexp }{
	{compile(`^\d{3,20}:A[A-Za-z0-9_\-]{8,}$`), compile(`^\d{5,16}:A[A-Za-z0-9_\-]{34}$`)}, // Telegram: number of the bot, secret
	{compile(`^xox[abcprs]-`), compile(`^xox[a-z]-(?:[A-Za-z0-9]+-)*[A-Za-z0-9]{8,}$`)},    // Slack
	{compile(`^v1\.0-[0-9a-f]{16,}-`), compile(`^v1\.0-[0-9a-f]{24}-[0-9a-f]{146}$`)},      // Cloudflare, keys for origins
	{compile(`^xapp-\d`), compile(`(?i)^xapp-\d{1,5}-[A-Z0-9]+-\d+-[a-z0-9]{64}`)},
	{compile(`^6L[a-z][A-Za-z0-9_\-]{20,}$`), compile(`^6L[A-Za-z0-9_\-]{38}$`)}, // reCAPTCHA
	{compile(`^dapi[0-9a-z]{16,}$`), compile(`^dapi[0-9a-f]{32}$`)},              // Databricks
}
