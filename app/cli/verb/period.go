package verb

import (
	"time"

	"github.com/airlock-mcp/airlock/audit"
)

// PeriodFlags select the entries of a list by their time. A list of something other than records says with the tag
// set:"dated=was created" which time that is.
type PeriodFlags struct {
	Since string `placeholder:"TIME" help:"Only what ${dated=was recorded} since: 7d, 24h, 2026-11-20 or 2026-11-20T08:00:00Z."`
	Until string `placeholder:"TIME" help:"Only what ${dated=was recorded} before that time."`
}

// Period returns the period that the flags select.
func (f PeriodFlags) Period() (audit.Period, error) { return f.PeriodAt(time.Now()) }

// PeriodAt returns the period that the flags select at a time. Dates are days in the location of now.
func (f PeriodFlags) PeriodAt(now time.Time) (audit.Period, error) {
	p, err := audit.ParsePeriod(f.Since, f.Until, now)
	if err != nil {
		return p, Usage(err.Error(), "write --since 7d, or --since 2026-11-20 --until 2026-11-27")
	}
	return p, nil
}
