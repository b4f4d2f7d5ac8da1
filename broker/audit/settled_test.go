package audit

import "time"

// SettleAtOnce has fingerprints count at once, and returns what undoes that.
func SettleAtOnce() (undo func()) {
	before := settledAfter
	settledAfter = -time.Hour
	return func() { settledAfter = before }
}
