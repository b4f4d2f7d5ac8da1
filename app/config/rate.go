package config

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// The bounds of a rate.
const (
	maxRateCalls = 1_000_000
	minRatePer   = time.Millisecond
	maxRatePer   = 24 * time.Hour
)

// rate is a number of calls in a time: 10/s, 1000/5s, 100/m.
type rate struct{ to *Rate }

func (v rate) set(text string) error {
	parsed, ok := parseRate(text)
	switch {
	case !ok:
		return errors.New("must be a number of calls in a time, such as 10/s or 1000/5s")
	case parsed.Calls < 1 || parsed.Calls > maxRateCalls || parsed.Per < minRatePer || parsed.Per > maxRatePer:
		return fmt.Errorf("must be between 1 and %d calls in %v to %s", maxRateCalls, minRatePer,
			showDuration(maxRatePer))
	}
	*v.to = parsed
	return nil
}

func parseRate(text string) (Rate, bool) {
	calls, per, ok := strings.Cut(text, "/")
	if !ok {
		return Rate{}, false
	}
	if per == "s" || per == "m" || per == "h" {
		per = "1" + per
	}
	n, err := strconv.Atoi(calls)
	if err != nil {
		return Rate{}, false
	}
	d, err := time.ParseDuration(per)
	return Rate{n, d}, err == nil
}
