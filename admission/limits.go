package admission

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"
)

// Limits limit what code can do through tools. A zero member means the value of DefaultLimits. Code
// cannot raise any of them.
type Limits struct {
	Calls        int   // of one run
	SessionCalls int   // of one session of the host, over all its runs
	Concurrent   int   // concurrent calls of one run, including those with unread answers; more wait
	BytesIn      int64 // of all results into one run
	BytesOut     int64 // of all arguments out of one run
	ResultBytes  int64 // of one result; a frame of the socket holds 16 MiB
	// LargeResultBytes is the maximum size of a result that is kept as a file of the session.
	LargeResultBytes int64
	// UnreadBytes is the maximum number of bytes of unread answers of one run; at least
	// ResultBytes.
	UnreadBytes int64
	CallTimeout time.Duration // time limit for a server's answer
	// ApprovalTimeout is how long a question to a person stays open.
	ApprovalTimeout time.Duration
	// Repeats is how often a run may repeat one call, with the same arguments and the same result,
	// before it counts as a loop.
	Repeats     int
	ServerRate  Rate // of the calls to one server, over all runs
	ToolRate    Rate // of the calls to one tool, over all runs
	CatalogRate Rate // of one run's catalog lookups
	// Servers contains limits of single servers, by their IDs.
	Servers map[string]ServerLimits
}

// ServerLimits override the limits for one server. Zero members do not.
type ServerLimits struct {
	CallTimeout time.Duration
	Rate        Rate
	Tools       map[string]Rate // by the tools' names
}

// Rate allows Calls calls in each Per. It is a token bucket that refills evenly and holds Calls
// tokens.
type Rate struct {
	Calls int
	Per   time.Duration
}

// String returns the rate in the form of the configuration: "1000/5s".
func (r Rate) String() string { return strconv.Itoa(r.Calls) + "/" + r.Per.String() }

// Names of the limits in records: the keys of the configuration that set them.
const (
	limitCalls        = "limits.calls"
	limitSessionCalls = "limits.sessionCalls"
	limitConcurrent   = "limits.concurrentCalls"
	LimitBytesIn      = "limits.bytesIn"
	limitBytesOut     = "limits.bytesOut"
	LimitResultBytes  = "limits.resultBytes"
	limitLargeResult  = "limits.largeResultBytes"
	LimitUnreadBytes  = "limits.unreadBytes"
	limitCallTimeout  = "limits.callTimeout"
	limitApproval     = "limits.approvalTimeout"
	limitRepeats      = "limits.repeats"
	limitServerRate   = "limits.rate"
	limitToolRate     = "limits.toolRate"
	limitCatalogRate  = "limits.catalogRate"
)

// DefaultLimits returns limits that are sufficient for normal code.
func DefaultLimits() Limits {
	return Limits{
		Calls: 1000, SessionCalls: 100_000, Concurrent: 16,
		BytesIn: 1 << 30, BytesOut: 256 << 20, ResultBytes: 12 << 20, LargeResultBytes: 128 << 20,
		UnreadBytes: 32 << 20,
		CallTimeout: time.Minute, ApprovalTimeout: 10 * time.Minute, Repeats: 50,
		ServerRate: Rate{1000, 5 * time.Second}, ToolRate: Rate{1000, 5 * time.Second},
		CatalogRate: Rate{500, 10 * time.Second},
	}
}

// withDefaults sets missing limits to their defaults, and returns an error for invalid ones.
func (l Limits) withDefaults() (Limits, error) {
	d := DefaultLimits()
	l.Calls, l.SessionCalls = orDefault(l.Calls, d.Calls), orDefault(l.SessionCalls, d.SessionCalls)
	l.Concurrent, l.Repeats = orDefault(l.Concurrent, d.Concurrent), orDefault(l.Repeats, d.Repeats)
	l.BytesIn, l.BytesOut = orDefault(l.BytesIn, d.BytesIn), orDefault(l.BytesOut, d.BytesOut)
	l.ResultBytes = orDefault(l.ResultBytes, d.ResultBytes)
	l.LargeResultBytes = orDefault(l.LargeResultBytes, d.LargeResultBytes)
	l.UnreadBytes = orDefault(l.UnreadBytes, max(d.UnreadBytes, l.ResultBytes))
	l.CallTimeout = orDefault(l.CallTimeout, d.CallTimeout)
	l.ServerRate, l.ToolRate = orDefault(l.ServerRate, d.ServerRate), orDefault(l.ToolRate, d.ToolRate)
	l.CatalogRate = orDefault(l.CatalogRate, d.CatalogRate)
	l.ApprovalTimeout = orDefault(l.ApprovalTimeout, d.ApprovalTimeout)
	if l.Calls < 0 || l.SessionCalls < 0 || l.Concurrent < 0 || l.Repeats < 0 ||
		l.BytesIn < 0 || l.BytesOut < 0 || l.ResultBytes < 0 || l.LargeResultBytes < 0 ||
		l.CallTimeout < 0 || l.ApprovalTimeout < 0 {
		return l, fmt.Errorf("a limit is negative")
	}
	if l.UnreadBytes < l.ResultBytes {
		return l, fmt.Errorf("the limit of %d unread bytes is less than that of %d bytes for one result",
			l.UnreadBytes, l.ResultBytes)
	}
	rates := []Rate{l.ServerRate, l.ToolRate, l.CatalogRate}
	for _, server := range l.Servers {
		if server.CallTimeout < 0 {
			return l, fmt.Errorf("a limit is negative")
		}
		rates = slices.AppendSeq(append(rates, orDefault(server.Rate, l.ServerRate)), maps.Values(server.Tools))
	}
	for _, rate := range rates {
		if rate.Calls <= 0 || rate.Per <= 0 {
			return l, fmt.Errorf("the rate %v must be positive", rate)
		}
	}
	return l, nil
}

func orDefault[T comparable](set, other T) T {
	var zero T
	if set == zero {
		return other
	}
	return set
}

// TimeoutOf returns the time limit for a server's answer and the name of that limit.
func (l Limits) TimeoutOf(server string) (time.Duration, string) {
	if own := l.Servers[server].CallTimeout; own > 0 {
		return own, "mcpServers." + server + ".callTimeout"
	}
	return l.CallTimeout, limitCallTimeout
}

// serverRate returns the rate of a server and the name of that limit.
func (l Limits) serverRate(server string) (Rate, string) {
	if own := l.Servers[server].Rate; own.Calls > 0 {
		return own, "servers." + server + ".rate"
	}
	return l.ServerRate, limitServerRate
}

// toolRate returns the rate of a tool and the name of that limit.
func (l Limits) toolRate(server, tool string) (Rate, string) {
	if own, ok := l.Servers[server].Tools[tool]; ok {
		return own, "servers." + server + ".tools." + tool + ".rate"
	}
	return l.ToolRate, limitToolRate
}

// Table returns the limits by the keys of the configuration, with values in the form of the
// configuration. It is part of a run's first record.
func (l Limits) Table() map[string]string {
	table := map[string]string{
		limitCalls: strconv.Itoa(l.Calls), limitSessionCalls: strconv.Itoa(l.SessionCalls),
		limitConcurrent: strconv.Itoa(l.Concurrent),
		LimitBytesIn:    strconv.FormatInt(l.BytesIn, 10), limitBytesOut: strconv.FormatInt(l.BytesOut, 10),
		LimitResultBytes: strconv.FormatInt(l.ResultBytes, 10),
		limitLargeResult: strconv.FormatInt(l.LargeResultBytes, 10),
		LimitUnreadBytes: strconv.FormatInt(l.UnreadBytes, 10),
		limitCallTimeout: l.CallTimeout.String(), limitApproval: l.ApprovalTimeout.String(),
		limitRepeats:    strconv.Itoa(l.Repeats),
		limitServerRate: l.ServerRate.String(), limitToolRate: l.ToolRate.String(),
		limitCatalogRate: l.CatalogRate.String(),
	}
	for id, server := range l.Servers {
		if timeout, name := l.TimeoutOf(id); timeout != l.CallTimeout {
			table[name] = timeout.String()
		}
		if rate, name := l.serverRate(id); rate != l.ServerRate {
			table[name] = rate.String()
		}
		for tool := range server.Tools {
			rate, name := l.toolRate(id, tool)
			table[name] = rate.String()
		}
	}
	return table
}
