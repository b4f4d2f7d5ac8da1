package audit

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Period is a span of time: from Since, before Until. A zero time means no limit.
type Period struct{ Since, Until time.Time }

// ParseTime reads a point in time: how long ago ("90m", "36h", "7d", "2w"), a date
// ("2026-11-20", midnight in the location of now), or a time of RFC 3339.
func ParseTime(text string, now time.Time) (time.Time, error) {
	for suffix, unit := range map[string]int{"d": 1, "w": 7} {
		if digits, ok := strings.CutSuffix(text, suffix); ok {
			if n, err := strconv.ParseUint(digits, 10, 16); err == nil {
				return now.AddDate(0, 0, -unit*int(n)), nil
			}
		}
	}
	if ago, err := time.ParseDuration(text); err == nil && ago >= 0 {
		return now.Add(-ago), nil
	}
	if day, err := time.ParseInLocation(time.DateOnly, text, now.Location()); err == nil {
		return day, nil
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at, nil
	}
	return time.Time{}, fmt.Errorf("%q is not a time: write 7d, 24h, 2026-11-20 or 2026-11-20T08:00:00Z", text)
}

// ParsePeriod reads the two ends of a period, either of which may be empty.
func ParsePeriod(since, until string, now time.Time) (p Period, err error) {
	for _, end := range []struct {
		text string
		to   *time.Time
	}{{since, &p.Since}, {until, &p.Until}} {
		if end.text != "" {
			var parseErr error
			*end.to, parseErr = ParseTime(end.text, now)
			err = errors.Join(err, parseErr)
		}
	}
	if err == nil && !p.Until.IsZero() && p.Since.After(p.Until) {
		err = fmt.Errorf("the period ends before it begins: since %s, until %s", p.Since.Format(time.RFC3339),
			p.Until.Format(time.RFC3339))
	}
	return p, err
}

// IsZero reports whether the period has no limit.
func (p Period) IsZero() bool { return p == Period{} }

// Contains reports whether a time is in the period.
func (p Period) Contains(at time.Time) bool {
	return (p.Since.IsZero() || !at.Before(p.Since)) && (p.Until.IsZero() || at.Before(p.Until))
}

// Has reports whether a record was written in the period.
func (p Period) Has(r Record) bool {
	if p.IsZero() {
		return true
	}
	at, err := when(r)
	return err == nil && p.Contains(at)
}

// Before reports whether a record was written before the period, so that older records need not be
// read. A minute is allowed for a clock that was set back.
func (p Period) Before(r Record) bool {
	at, err := when(r)
	return err == nil && at.Before(p.Since.Add(-time.Minute))
}

// FirstSince returns the number of a record from which on a reader finds all records of the
// period. It reads the first line of some files only.
func FirstSince(dir string, p Period) (uint64, error) {
	if p.Since.IsZero() {
		return 1, nil
	}
	list, err := segments(dir)
	if err != nil {
		return 0, err
	}
	for i, s := range slices.Backward(list) {
		var first Record
		err := eachLine(s.path, 0, func(_ int, line []byte) error {
			if first, err = open(line); err != nil {
				return err
			}
			return io.EOF
		})
		if err != nil && !errors.Is(err, io.EOF) {
			return 0, fmt.Errorf("reading the audit log: %w", err)
		}
		if at, err := when(first); err == nil && at.Before(p.Since) {
			return list[max(0, i-1)].first, nil // a clock may have been set back a little meanwhile
		}
	}
	return 1, nil
}
