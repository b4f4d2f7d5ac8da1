// Package release says which release of Airlock this program is.
package release

// The version of Airlock and its date, which releases change.
const (
	Version = "0.1.0"
	Date    = "2026-11-22"
)
