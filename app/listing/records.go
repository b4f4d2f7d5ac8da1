package listing

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/internal/caller"
)

// maxScan is how many bytes of a log are read for one page.
const maxScan = 64 << 20

// RecordQuery selects the records that match all of its non-empty fields.
type RecordQuery struct {
	Kind, Outcome, Server, Tool, Run, Principal string
	Period                                      audit.Period
	Before                                      Places
	After                                       Places // the numbers of the newest records that are not wanted
	Limit                                       int
}

// RecordField is a field of a query and the member of a record that it is compared with.
type RecordField struct {
	Name, member string
	Of           func(*RecordQuery) *string
	of           func(audit.Record) string
}

// RecordFields returns the fields of a query.
func RecordFields() []RecordField { return recordFields[:] }

var recordFields = [...]RecordField{
	{"kind", "kind", func(q *RecordQuery) *string { return &q.Kind },
		func(r audit.Record) string { return string(r.Kind) }},
	{"outcome", "outcome", func(q *RecordQuery) *string { return &q.Outcome },
		func(r audit.Record) string { return r.Outcome }},
	{"server", "server_id", func(q *RecordQuery) *string { return &q.Server },
		func(r audit.Record) string { return r.ServerID }},
	{"tool", "tool_name", func(q *RecordQuery) *string { return &q.Tool },
		func(r audit.Record) string { return r.ToolName }},
	{"run", "run_id", func(q *RecordQuery) *string { return &q.Run },
		func(r audit.Record) string { return r.RunID }},
	{"principal", "principal", func(q *RecordQuery) *string { return &q.Principal },
		func(r audit.Record) string { return r.Principal }},
}

func (q *RecordQuery) matches(r audit.Record) bool {
	for _, field := range RecordFields() {
		if text := *field.Of(q); text != "" && text != field.of(r) {
			return false
		}
	}
	return q.Period.Has(r)
}

// words returns a text that the lines of all matching records contain. It may be empty.
func (q *RecordQuery) words() []string {
	for _, field := range RecordFields() {
		// Letters, digits and "_" are not escaped in a line.
		if text := *field.Of(q); text != "" && !strings.ContainsFunc(text, func(r rune) bool {
			return r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
		}) {
			return []string{`"` + field.member + `":"` + text + `"`}
		}
	}
	return []string{""}
}

// Places are the numbers of records, by node: each log continues before its number. A log without a number begins with
// its newest record, and one with the number 1 has no more.
type Places map[string]uint64

// String returns the form that ParsePlaces reads.
func (p Places) String() string {
	var list []string
	for node, seq := range p {
		list = append(list, strings.TrimPrefix(node+":"+strconv.FormatUint(seq, 10), ":"))
	}
	slices.Sort(list)
	return strings.Join(list, ",")
}

// ParsePlaces reads places. Other texts are left out.
func ParsePlaces(text string) Places {
	p := Places{}
	for one := range strings.SplitSeq(text, ",") {
		i := strings.LastIndex(one, ":")
		if seq, err := strconv.ParseUint(one[i+1:], 10, 53); err == nil && seq > 0 {
			p[one[:max(i, 0)]] = seq
		}
	}
	return p
}

// Record is a record of one node.
type Record struct {
	Node string `json:"node,omitempty"` // of a cluster
	audit.Record
}

// Records are the records of a page, the newest first.
type Records struct {
	Records    []Record
	Older      Places   // of the next page; empty after the last page
	Newest     Places   // the numbers of the newest records of the nodes that answered, 0 without records
	Partly     bool     // only a part of a log was read
	Problem    string   // why records cannot be shown
	Unanswered []string // nodes whose records are missing
	Copied     []Copied // nodes whose records are from copies
}

// Missing returns sentences about nodes whose records may be missing, or "".
func (r Records) Missing() string {
	text := Missing(r.Unanswered)
	for _, one := range r.Copied {
		text = strings.TrimSpace(text + " " + one.String())
	}
	return text
}

// ownRecords are the records of one node.
type ownRecords struct {
	Records []audit.Record
	Older   uint64 // 0 after the last page
	Newest  uint64 // 0 if the log is empty
	Partly  bool
	Problem string
}

var errLog = errors.New("the caller may not see the log")

// errBegun ends a scan at the beginning of the period.
var errBegun = errors.New("the period begins")

// OwnRecords returns the records of this process. The caller must be allowed to see the log.
func (l *Lists) OwnRecords(q RecordQuery) Records {
	return l.merge([]part[ownRecords]{{l.opts.Node.Name(), l.scan(q)}}, nil, q)
}

// Records returns the records of all nodes. Those of one run are also returned if its node does not answer, from their
// copies. The caller must be allowed to see the log.
func (l *Lists) Records(ctx context.Context, who caller.Caller, q RecordQuery) (Records, error) {
	parts, unanswered, err := gather(ctx, l, kindRecords, who, q, l.ownRecords)
	if err != nil {
		return Records{}, err
	}
	var copied []Copied
	if q.Run != "" {
		parts, unanswered, copied = l.addCopies(ctx, who, q, parts, unanswered)
	}
	all := l.merge(parts, unanswered, q)
	all.Copied = copied
	return all, nil
}

// merge takes the newest of the first records of each log until the page is full.
func (l *Lists) merge(parts []part[ownRecords], unanswered []string, q RecordQuery) Records {
	all := Records{Unanswered: unanswered, Newest: Places{}}
	taken := make([]int, len(parts))
	for len(all.Records) < q.Limit {
		newest, at := -1, time.Time{}
		for i, p := range parts {
			if taken[i] == len(p.list.Records) {
				continue
			}
			// a time that cannot be read is the oldest
			if t, _ := time.Parse(time.RFC3339Nano, p.list.Records[taken[i]].Time); newest < 0 || t.After(at) {
				newest, at = i, t
			}
		}
		if newest < 0 {
			break
		}
		all.Records = append(all.Records, Record{parts[newest].node, parts[newest].list.Records[taken[newest]]})
		taken[newest]++
	}
	older := Places{}
	for _, node := range unanswered { // its records follow when it answers again
		if seq := q.Before[node]; seq > 0 {
			older[node] = seq
		}
	}
	more := false
	for i, p := range parts {
		all.Newest[p.node] = p.list.Newest
		all.Partly = all.Partly || p.list.Partly
		if p.list.Problem != "" {
			all.Problem = strings.TrimSpace(fmt.Sprintf("%s The log %scannot be read: %s", all.Problem, ofNode(p.node),
				p.list.Problem))
		}
		switch seq := p.list.Older; {
		case taken[i] < len(p.list.Records) && taken[i] > 0:
			older[p.node], more = p.list.Records[taken[i]-1].Seq, true
		case taken[i] < len(p.list.Records):
			more = true
			if seq := q.Before[p.node]; seq > 0 {
				older[p.node] = seq
			}
		case seq > 0:
			older[p.node], more = seq, true
		default:
			older[p.node] = 1
		}
	}
	if more {
		all.Older = older
	}
	return all
}

func ofNode(name string) string {
	if name == "" {
		return ""
	}
	return "of node " + name + " "
}

func (l *Lists) ownRecords(who caller.Caller, q RecordQuery) (ownRecords, error) {
	if !who.May(caller.People, caller.See, caller.Object{Kind: caller.Log}) {
		return ownRecords{}, errLog
	}
	return l.scan(q), nil
}

// scan reads the log of this process.
func (l *Lists) scan(q RecordQuery) (found ownRecords) {
	last := uint64(0)
	whole, err := audit.ScanBefore(l.opts.Audit, q.Before[l.opts.Node.Name()], maxScan, q.words(),
		func(b audit.Brief, record func() (audit.Record, error)) (bool, error) {
			r, err := record()
			if err != nil {
				return false, err
			}
			last, found.Newest = b.Seq, max(found.Newest, b.Seq)
			if b.Seq <= q.After[l.opts.Node.Name()] {
				return false, errBegun
			}
			if q.Period.Before(r) {
				return false, errBegun
			}
			if !q.matches(r) {
				return true, nil
			}
			if len(found.Records) == q.Limit {
				return false, nil
			}
			found.Records = append(found.Records, r)
			return true, nil
		})
	switch {
	case errors.Is(err, errBegun):
		whole = true
	case errors.Is(err, fs.ErrNotExist):
		return found
	case err != nil:
		found.Problem = err.Error()
		return found
	}
	if n := len(found.Records); n > 0 && !whole && n == q.Limit {
		found.Older = found.Records[n-1].Seq
	} else if !whole && last > 0 {
		found.Older, found.Partly = last, true
	}
	return found
}
