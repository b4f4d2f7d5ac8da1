package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// row is one line of the table: a measurement and its comparisons.
type row struct {
	What   string       `json:"what"`
	Unit   string       `json:"unit"`
	Count  int          `json:"n"` // how many measurements there are
	P50    float64      `json:"p50"`
	P90    float64      `json:"p90"`
	P95    float64      `json:"p95"`
	P99    float64      `json:"p99"`
	Target string       `json:"target,omitempty"` // as the design has it
	Beside []comparison `json:"beside,omitempty"`
}

// comparison sets a row's median in relation to that of something else which
// was measured in turn with it.
type comparison struct {
	Text  string  `json:"text"`
	Value float64 `json:"value"` // the quotient, or the difference in the row's unit
}

// newRow sums up what was measured, of which the lower is the better.
func newRow(what, unit string, s sample) row {
	return row{What: what, Unit: unit, Count: len(s), P50: s.quantile(.5), P90: s.quantile(.9),
		P95: s.quantile(.95), P99: s.quantile(.99)}
}

// newRates sums up rates, of which the higher are the better: p95 is what 95 of
// 100 reach.
func newRates(what, unit string, s sample) row {
	return row{What: what, Unit: unit, Count: len(s), P50: s.quantile(.5), P90: s.quantile(.1),
		P95: s.quantile(.05), P99: s.quantile(.01)}
}

// aims names the row's target.
func (r row) aims(target string) row {
	r.Target = target
	return r
}

// times adds the ratio of the row's median to another one.
func (r row) times(other sample, name string) row {
	quotient := r.P50 / other.quantile(.5)
	r.Beside = append(r.Beside, comparison{fmt.Sprintf("%.2f × %s", quotient, name), quotient})
	return r
}

// adds adds the difference of the row's median to another one.
func (r row) adds(other sample, name string) row {
	difference := r.P50 - other.quantile(.5)
	r.Beside = append(r.Beside, comparison{fmt.Sprintf("%s %s more than %s", figure(difference), r.Unit, name),
		difference})
	return r
}

// fewestForPercentiles is the number of measurements from which the table has p90, p95 and p99.
const fewestForPercentiles = 50

// table is printed as Markdown, row by row.
type table struct {
	out io.Writer

	Machine   string `json:"machine"`
	LoadAfter string `json:"load_after"` // /proc/loadavg when all was measured
	Ended     string `json:"ended"`      // RFC 3339
	Rows      []row  `json:"rows"`
}

func (t *table) begin(machine string) {
	t.Machine = machine
	fmt.Fprintf(t.out, "%s\n\n", machine)
	t.line("what", "n", "p50", "p90", "p95", "p99", "unit", "target", "beside it, at p50")
	t.line("---", "--:", "--:", "--:", "--:", "--:", "---", "---", "---")
}

func (t *table) add(rows ...row) {
	for _, r := range rows {
		beside := make([]string, len(r.Beside))
		for i, c := range r.Beside {
			beside[i] = c.Text
		}
		p90, p95, p99 := "", "", "" // of fewer measurements they would be its extremes
		if r.Count >= fewestForPercentiles {
			p90, p95, p99 = figure(r.P90), figure(r.P95), figure(r.P99)
		}
		t.line(r.What, fmt.Sprint(r.Count), figure(r.P50), p90, p95, p99, r.Unit, r.Target, strings.Join(beside, ", "))
	}
	t.Rows = append(t.Rows, rows...)
}

func (t *table) line(what, n, p50, p90, p95, p99, unit, target, beside string) {
	fmt.Fprintf(t.out, "| %-64s | %5s | %6s | %6s | %6s | %6s | %-4s | %-6s | %s |\n", what, n, p50, p90, p95, p99,
		unit,
		target, beside)
}

func (t *table) end(load string, now time.Time) {
	t.LoadAfter, t.Ended = load, now.UTC().Format(time.RFC3339)
	fmt.Fprintf(t.out, "\nLoad at the end: %s.\n", load)
}

func (t *table) writeJSON(path string) error {
	text, err := json.MarshalIndent(t, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}

// figure writes a number with three digits that count.
func figure(v float64) string {
	switch {
	case v >= 100 || v <= -100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10 || v <= -10:
		return fmt.Sprintf("%.1f", v)
	case v >= 1 || v <= -1:
		return fmt.Sprintf("%.2f", v)
	}
	return fmt.Sprintf("%.3f", v)
}
