package console

import (
	"time"

	"github.com/airlock-mcp/airlock/audit"
)

// The size of a timeline in SVG units.
const (
	timelineWidth = 1000
	timelineNames = 260 // the width of the names
	rowHeight     = 22
	maxBars       = 100
	minBar        = 2 // so that the shortest calls are visible
)

// timeline is a picture of the times of a run's questions and calls. Its numbers are in
// attributes, because the pages have no inline style.
type timeline struct {
	Bars          []bar
	Left          int // calls that are not shown
	Width, Height int
	Took          time.Duration
}

// bar is one call.
type bar struct {
	Name, State string
	Class       string
	Y, TextY    int
	X, W        int // the time of the call
	AskX, AskW  int // the time of the question to a person; W 0: no question
	Label       string
}

// timelineOf returns the timeline of the calls of a run.
func timelineOf(tree *audit.RunTree, now time.Time) timeline {
	begin, end := now, now
	if tree.Start != nil {
		begin = timeOf(tree.Start.Time)
	}
	if tree.End != nil {
		end = timeOf(tree.End.Time)
	}
	t := timeline{Width: timelineWidth, Took: max(0, end.Sub(begin)).Truncate(time.Millisecond)}
	if tree.Start == nil || begin.IsZero() || !end.After(begin) {
		return t
	}
	x := func(at time.Time) int {
		share := float64(at.Sub(begin)) / float64(end.Sub(begin))
		return timelineNames + int(min(1, max(0, share))*(timelineWidth-timelineNames))
	}
	for i, c := range tree.Calls {
		if i == maxBars {
			t.Left = len(tree.Calls) - i
			break
		}
		t.Bars = append(t.Bars, barOf(c, len(t.Bars), end, x))
	}
	t.Height = len(t.Bars)*rowHeight + 4
	return t
}

// barOf returns the bar of a call, from its intent, or else its first record, to its outcome.
func barOf(c audit.CallTree, row int, end time.Time, x func(time.Time) int) bar {
	s := stepOfCall(c)
	b := bar{Name: s.Name, State: s.State, Class: s.Class, Y: row*rowHeight + 4, TextY: row*rowHeight + 17}
	from, to := timeOf(c.Last().Time), end
	if c.Outcome != nil {
		to = timeOf(c.Outcome.Time)
	}
	if c.Intent != nil {
		from = timeOf(c.Intent.Time)
	}
	b.X, b.W = x(from), max(minBar, x(to)-x(from))
	if len(c.Approvals) > 0 {
		asked, answered := timeOf(c.Approvals[0].Time), end
		if len(c.Approvals) > 1 {
			answered = timeOf(c.Approvals[len(c.Approvals)-1].Time)
		}
		b.AskX, b.AskW = x(asked), max(minBar, x(answered)-x(asked))
		if c.Intent == nil && c.Outcome == nil { // it still waits
			b.W = 0
		}
	}
	b.Label = to.Sub(from).Truncate(time.Millisecond).String()
	return b
}
