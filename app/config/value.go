package config

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// value parses one scalar. The error of set completes the sentence
// "sandbox.memory …, not …" and does not contain the text, which may be the value of a variable.
type value interface {
	set(text string) error
}

// size is a number of bytes from least to most.
type size struct {
	to          *int64
	least, most int64
}

// units are the suffixes of a size, the longest first so that "MiB" is not read as "B".
var units = []struct {
	suffix string
	bytes  int64
}{
	{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40},
	{"kB", 1e3}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"B", 1}, {"", 1},
}

func (v size) set(text string) error {
	n, ok := parseSize(text)
	switch {
	case !ok:
		return fmt.Errorf("must be a size such as %s", v.show())
	case n < v.least || n > v.most:
		return fmt.Errorf("must be between %s and %s", showSize(v.least), showSize(v.most))
	}
	*v.to = n
	return nil
}

func (v size) show() string { return showSize(*v.to) }

func parseSize(text string) (int64, bool) {
	for _, u := range units {
		digits, ok := strings.CutSuffix(text, u.suffix)
		if !ok {
			continue
		}
		n, err := strconv.ParseUint(strings.TrimSpace(digits), 10, 63)
		if err != nil || n > uint64(math.MaxInt64/u.bytes) {
			return 0, false
		}
		return int64(n) * u.bytes, true
	}
	return 0, false
}

// showSize writes n with the largest binary unit that divides it.
func showSize(n int64) string {
	for _, u := range []int{3, 2, 1, 0} {
		if n != 0 && n%units[u].bytes == 0 {
			return strconv.FormatInt(n/units[u].bytes, 10) + units[u].suffix
		}
	}
	return strconv.FormatInt(n, 10)
}

// duration is a duration from least to most.
type duration struct {
	to          *time.Duration
	least, most time.Duration
}

func (v duration) set(text string) error {
	d, err := parseDuration(text)
	switch {
	case err != nil:
		return fmt.Errorf("must be a time such as %s", v.show())
	case d < v.least || d > v.most:
		return fmt.Errorf("must be between %s and %s", showDuration(v.least), showDuration(v.most))
	}
	*v.to = d
	return nil
}

// parseDuration is time.ParseDuration with days: 30d.
func parseDuration(text string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.ParseUint(days, 10, 16)
		return time.Duration(n) * 24 * time.Hour, err
	}
	return time.ParseDuration(text)
}

func (v duration) show() string { return showDuration(*v.to) }

// showDuration formats d without trailing zero units: 5m, not 5m0s.
func showDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// count is a whole number from least to most.
type count[T int | int64 | uint64] struct {
	to          *T
	least, most T
}

func (v count[T]) set(text string) error {
	n, err := strconv.ParseInt(text, 10, 64)
	switch {
	case err != nil:
		return fmt.Errorf("must be a whole number such as %s", v.show())
	case n < int64(v.least) || n > int64(v.most):
		return fmt.Errorf("must be between %d and %d", v.least, v.most)
	}
	*v.to = T(n)
	return nil
}

func (v count[T]) show() string { return fmt.Sprint(*v.to) }

// cores is a number of processors, which may be a fraction.
type cores struct {
	to          *float64
	least, most float64
}

func (v cores) set(text string) error {
	n, err := strconv.ParseFloat(text, 64)
	switch {
	case err != nil:
		return fmt.Errorf("must be a number such as %s", v.show())
	case !(n >= v.least && n <= v.most): // also true for NaN
		return fmt.Errorf("must be between %g and %g", v.least, v.most)
	}
	*v.to = n
	return nil
}

func (v cores) show() string { return strconv.FormatFloat(*v.to, 'g', -1, 64) }

// word is one of a list of words.
type word struct {
	to      *string
	choices []string
}

func (v word) set(text string) error {
	if !slices.Contains(v.choices, text) {
		return fmt.Errorf("must be one of %s", strings.Join(v.choices, ", "))
	}
	*v.to = text
	return nil
}

// flag is true or false. The other spellings of YAML 1.1, such as yes, are errors.
type flag struct{ to *bool }

func (v flag) set(text string) error {
	if text != "true" && text != "false" {
		return errors.New("must be true or false")
	}
	*v.to = text == "true"
	return nil
}

// free is any non-empty text.
type free struct{ to *string }

func (v free) set(text string) error {
	if text == "" {
		return errors.New("must be a text that is not empty")
	}
	*v.to = text
	return nil
}
