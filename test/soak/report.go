package main

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// rows is the number of intervals of the run, each of at least a minute if the run is long
// enough. lead is the share of the first intervals, in which caches fill, that trends
// ignore.
const (
	rows = 60
	lead = 5 // one fifth
)

// report collects what is measured and prints a row for each part. Its methods may be
// called concurrently.
type report struct {
	out    io.Writer
	length time.Duration

	mu     sync.Mutex
	parts  []part
	closed int // parts that were printed
}

// part is what was measured in one part of the time.
type part struct {
	took    []float64 // milliseconds of each job that was done, from when it was due
	beside  []float64 // milliseconds of a program that does nothing
	refused int       // jobs that were not done
	least   usage     // the minimum of each quantity, which bursts do not affect
}

func newReport(out io.Writer, length time.Duration) *report {
	n := min(rows, max(12, int(length/time.Minute)))
	r := &report{out: out, length: length, parts: make([]part, n)}
	names := []string{"minute", "done", "not done", "p50 ms", "p99 ms", "true p99 ms"}
	for _, q := range quantities {
		names = append(names, q.title())
	}
	r.line(names)
	r.line(strings.Split(strings.TrimSuffix(strings.Repeat("--:,", len(names)), ","), ","))
	return r
}

func (q quantity) title() string {
	if q.unit == "" {
		return q.name
	}
	return q.name + ", " + q.unit
}

func (r *report) line(cells []string) { fmt.Fprintf(r.out, "| %s |\n", strings.Join(cells, " | ")) }

// partLocked returns the part of a moment, and prints those before it.
func (r *report) partLocked(at time.Duration) *part {
	i := min(len(r.parts)-1, int(int64(at)*int64(len(r.parts))/int64(r.length)))
	for r.closed < i-1 { // jobs that were due in the last part may still be answered
		r.printLocked()
	}
	return &r.parts[i]
}

func (r *report) printLocked() {
	p := r.parts[r.closed]
	r.closed++
	minutes := r.length.Minutes() * float64(r.closed) / float64(len(r.parts))
	cells := []string{fmt.Sprintf("%.1f", minutes), fmt.Sprint(len(p.took)), fmt.Sprint(p.refused),
		fmt.Sprintf("%.0f", quantile(p.took, .5)), fmt.Sprintf("%.0f", quantile(p.took, .99)),
		fmt.Sprintf("%.1f", quantile(p.beside, .99))}
	for i, q := range quantities {
		value := "–"
		if p.least != nil {
			value = fmt.Sprintf("%.*f", decimals(q), p.least[i])
		}
		cells = append(cells, value)
	}
	r.line(cells)
}

func decimals(q quantity) int {
	if q.unit == "" {
		return 0
	}
	return 1
}

// answered notes a job that was answered at a moment, and what it took.
func (r *report) answered(at, took time.Duration, done bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.partLocked(at)
	if !done {
		p.refused++
		return
	}
	p.took = append(p.took, milliseconds(took))
}

func (r *report) compared(at, took time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.partLocked(at)
	p.beside = append(p.beside, milliseconds(took))
}

func (r *report) used(at time.Duration, u usage) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.partLocked(at)
	if p.least == nil {
		p.least = append(usage(nil), u...)
	}
	for i, value := range u {
		p.least[i] = min(p.least[i], value)
	}
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// end prints what is left, and what there was at rest.
func (r *report) end(before, after usage) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.closed < len(r.parts) {
		r.printLocked()
	}
	fmt.Fprintln(r.out, "\nAt rest, before and after, and the trend between:")
	fmt.Fprintln(r.out)
	r.line([]string{"what", "before", "after", "trend over the work"})
	r.line([]string{"---", "--:", "--:", "--:"})
	for i, q := range quantities {
		growth, _ := q.grows(r.seriesLocked(i))
		r.line([]string{q.title(), fmt.Sprintf("%.*f", decimals(q), before[i]),
			fmt.Sprintf("%.*f", decimals(q), after[i]), fmt.Sprintf("%+.*f", decimals(q)+1, growth)})
	}
	first, last := r.endsLocked()
	fmt.Fprintf(r.out, "\np99 in the first %v after the lead %.0f ms, in the last %.0f ms; of a program that does "+
		"nothing %.1f and %.1f ms.\n",
		first.length.Round(time.Second), quantile(first.took, .99), quantile(last.took, .99),
		quantile(first.beside, .99), quantile(last.beside, .99))
}

// seriesLocked is one quantity over time, without the lead.
func (r *report) seriesLocked(i int) []float64 {
	var series []float64
	for _, p := range r.parts[len(r.parts)/lead:] {
		if p.least != nil {
			series = append(series, p.least[i])
		}
	}
	return series
}

// window is several parts together.
type window struct {
	took, beside []float64
	length       time.Duration
}

// endsLocked returns the first ten minutes after the lead, and the last ten, or less for a
// short run.
func (r *report) endsLocked() (first, last window) {
	each := r.length / time.Duration(len(r.parts))
	from := len(r.parts) / lead
	n := max(1, min(int(10*time.Minute/each), (len(r.parts)-from)/3))
	return together(r.parts[from:from+n], each), together(r.parts[len(r.parts)-n:], each)
}

func together(parts []part, each time.Duration) window {
	w := window{length: each * time.Duration(len(parts))}
	for _, p := range parts {
		w.took, w.beside = append(w.took, p.took...), append(w.beside, p.beside...)
	}
	return w
}

// slower is the highest accepted ratio of the last p99 to the first, relative to the speed
// of the machine: two samples of some thousands differ by less.
const slower = 1.5

// judge returns what is not as it should be.
func (r *report) judge(before, after usage) []error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var errs []error
	for i, q := range quantities {
		if growth, bad := q.grows(r.seriesLocked(i)); bad {
			errs = append(errs, fmt.Errorf("%s grows: by %.1f over the work", q.title(), growth))
		}
		if more := after[i] - before[i]; q.level && more > max(q.slack, q.share*before[i]) {
			errs = append(errs, fmt.Errorf("%s at rest: %.0f before the work, %.0f after it", q.title(), before[i],
				after[i]))
		}
	}
	first, last := r.endsLocked()
	drift := max(1, quantile(last.beside, .99)/quantile(first.beside, .99))
	// NaN: nothing was done
	if was, is := quantile(first.took, .99), quantile(last.took, .99); !(is <= slower*drift*was) {
		errs = append(errs, fmt.Errorf(
			"p99 was %.0f ms and is %.0f ms, while a program that does nothing takes %.2f times what it took", was, is,
			drift))
	}
	return errs
}
