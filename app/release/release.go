// Package release identifies the release of this program.
package release

// The version of Airlock and its date, which releases change.
const (
	Version = "0.1.0"
	Date    = "2026-11-22"
)
