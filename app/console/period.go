package console

import (
	"net/url"
	"strings"

	"github.com/airlock-mcp/airlock/audit"
)

// periodFilter is the part of a filter that selects by time. The template "period" has its fields.
type periodFilter struct {
	Since, Until string // as they were entered

	period  audit.Period
	Problem string // why the period is not used; empty if it is
}

func (c *Console) periodOf(values url.Values) periodFilter {
	f := periodFilter{Since: strings.TrimSpace(values.Get("since")), Until: strings.TrimSpace(values.Get("until"))}
	var err error
	if f.period, err = audit.ParsePeriod(f.Since, f.Until, c.opts.Now()); err != nil {
		f.Problem = err.Error()
	}
	return f
}

// address returns the address of a page with the filter.
func (f periodFilter) address(path string, values url.Values) string {
	f.add(values)
	if len(values) == 0 {
		return path
	}
	return path + "?" + values.Encode()
}

// add sets the values of an address with the filter.
func (f periodFilter) add(values url.Values) {
	for name, text := range map[string]string{"since": f.Since, "until": f.Until} {
		if text != "" {
			values.Set(name, text)
		}
	}
}
