package quota

import (
	"fmt"
	"time"
)

// Resource is what a limit is about: a plural noun, in messages, in the metric of refused requests
// and in docs/serving.md.
type Resource string

// The resources that callers share.
const (
	Requests      Resource = "requests"       // over HTTP that are in progress
	LargeMessages Resource = "large messages" // bytes of bodies that are being read
	Sessions      Resource = "sessions"       // of the MCP protocol
	Browsers      Resource = "browser sessions"
	Links         Resource = "sign-in links"
	SignIns       Resource = "sign-ins"                        // to servers
	Failures      Resource = "failed sign-ins"                 // to the console, by network
	Refusals      Resource = "single records of refused calls" // in the audit log
	Connections   Resource = "connections of callers"
	Subscriptions Resource = "subscriptions" // to resources of servers, which have a limit each
	Questions     Resource = "questions"     // to people that are open
	Verifications Resource = "verifications"
	Sandboxes     Resource = "sandboxes"
	Suspended     Resource = "suspended runs" // bytes of their states
	Redactions    Resource = "redactions"
	LargeResults  Resource = "large results" // of tools, that are being stored
	Jobs          Resource = "jobs"          // background runs that are running
	QueuedJobs    Resource = "queued jobs"
	KeptJobs      Resource = "kept jobs"               // the finished ones included
	JobOutput     Resource = "output of finished jobs" // bytes
	Assessments   Resource = "assessments"             // of large requests of agents
	AssessedTime  Resource = "milliseconds of assessments"
	Scans         Resource = "log queries"
	ModelRequests Resource = "model requests"
	Credentials   Resource = "cached credentials"
	Rates         Resource = "accounts with a rate"
)

// Unbounded is the length of a queue without a limit. Such a queue is bounded by the number of
// requests in progress, which has its own limit.
const Unbounded = -1

// Limit is a limit of a Limiter or a Table. Zero means no limit, except for the queue: by default,
// requests do not wait.
type Limit struct {
	Resource Resource
	Total    int64   // units in use by all accounts, or entries of a table
	Each     int64   // of one account
	Reserved int64   // units of Total that only accounts without a unit can use
	Queue    int     // waiters of all accounts
	Rate     float64 // requests of one account in a second, in the long run
	Burst    int     // requests of one account at once

	// Of tables: Shared refuses an entry beyond Total, instead of evicting one of another account,
	// unless one has been idle. An entry that has been idle for that long cannot be used.
	Shared bool
	Idle   time.Duration

	Settings string // the settings that change the limit
}

// The defaults of limits that settings change, and their bounds.
const (
	MaxRequests      = 4_000 // also the maximum of serve.callerRequests
	DefaultSandboxes = 8
	DefaultWaiting   = 32
)

const mib = 1 << 20

// limits has all limits of what callers share. docs/serving.md has them as a table.
var limits = []Limit{
	{Resource: Requests, Total: MaxRequests, Each: MaxRequests / 8, Settings: "`serve.callerRequests`"},
	{Resource: LargeMessages, Total: 256 * mib, Each: 64 * mib},
	{Resource: Sessions, Total: 10_000, Each: 1_000, Shared: true, Idle: 30 * time.Minute},
	{Resource: Sandboxes, Total: DefaultSandboxes, Reserved: 1, Queue: DefaultWaiting,
		Settings: "`sandbox.maxSandboxes`, `sandbox.queue`"},
	{Resource: Suspended, Total: 1024 * mib, Each: 512 * mib, Settings: "`runs.suspendedSize`"},
	{Resource: Redactions, Queue: 1 << 16}, // in total one for each processor
	{Resource: LargeResults, Total: 1, Queue: Unbounded},
	{Resource: Jobs, Total: 5, Queue: 100},
	{Resource: QueuedJobs, Each: 25},
	{Resource: KeptJobs, Each: 1_000},
	{Resource: JobOutput, Total: 256 * mib, Each: 64 * mib},
	{Resource: Verifications, Total: 64, Each: 8, Rate: 50, Burst: 100},
	{Resource: Questions, Total: 64, Each: 16, Queue: Unbounded},
	{Resource: Assessments, Each: 1, Queue: Unbounded},
	{Resource: AssessedTime, Rate: 250, Burst: 10_000},
	{Resource: ModelRequests, Total: 16, Each: 8, Queue: Unbounded},
	{Resource: Scans, Total: 2, Queue: Unbounded},
	{Resource: Connections, Total: 128, Each: 32},
	{Resource: Subscriptions, Each: 250},
	{Resource: Browsers, Total: 1_000, Each: 20, Shared: true, Idle: 2 * time.Hour},
	{Resource: Links, Total: 100, Each: 10},
	{Resource: SignIns, Total: 100, Each: 10},
	{Resource: Refusals, Rate: 8, Burst: 500},
	{Resource: Failures, Rate: 1. / 6, Burst: 10},
	{Resource: Credentials, Total: 10_000},
	{Resource: Rates, Total: 10_000},
}

// ForSandboxes returns the limit of sandboxes for the given settings. Fewer than minShared sandboxes are not shared:
// one account can use all of them.
func ForSandboxes(total, queue int) Limit {
	l := For(Sandboxes)
	l.Total, l.Queue = int64(total), queue
	if total < minShared {
		l.Reserved = 0
	}
	return l
}

// ForSuspended returns the limit of suspended runs for a total size in bytes.
func ForSuspended(total int64) Limit {
	l := For(Suspended)
	l.Total, l.Each = total, total/2
	return l
}

// minShared is the minimum number of sandboxes of which one is reserved.
const minShared = DefaultSandboxes

// For returns the limit of a resource, with the defaults of its settings. It panics if the resource
// has none.
func For(r Resource) Limit {
	for _, l := range limits {
		if l.Resource == r {
			return l
		}
	}
	panic(fmt.Sprintf("no limit of %s", r))
}
