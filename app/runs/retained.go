package runs

import (
	"time"

	"github.com/airlock-mcp/airlock/internal/caller"
)

// Limits of finished runs. KeepFinished is how long they are kept at most. Runs that are queued or running are never
// evicted. The oldest finished run of the owner that holds the most is evicted first, so that a caller with many runs
// does not evict the runs of others.
const (
	KeepFinished     = time.Hour
	maxOwnedRuns     = 64       // finished runs of one owner
	maxOwnedBytes    = 16 << 20 // of their results and output
	maxRetainedRuns  = 1024     // of all owners
	maxRetainedBytes = 64 << 20
)

// retained has the finished runs that are still kept. The zero value is ready to use.
// The registry's lock guards it.
type retained struct {
	order []keptRun // by when they finished
	owned map[caller.Owner]holding
	total holding
}

// keptRun is a finished run with its size.
type keptRun struct {
	run   *Run
	since time.Time
	bytes int
}

// holding is the number and size of the runs of an owner, or of all owners.
type holding struct{ runs, bytes int }

func (h holding) plus(runs, bytes int) holding { return holding{h.runs + runs, h.bytes + bytes} }

// exceeds reports whether the holding is above the limits. A single run may be larger than bytes,
// because other limits bound its size.
func (h holding) exceeds(runs, bytes int) bool {
	return h.runs > runs || (h.bytes > bytes && h.runs > 1)
}

func (k *retained) add(run *Run, now time.Time) {
	added := keptRun{run: run, since: now, bytes: run.size()}
	if k.owned == nil {
		k.owned = map[caller.Owner]holding{}
	}
	k.order = append(k.order, added)
	k.owned[run.owner] = k.owned[run.owner].plus(1, added.bytes)
	k.total = k.total.plus(1, added.bytes)
}

// expired removes and returns the runs that finished more than KeepFinished ago.
func (k *retained) expired(now time.Time) []*Run {
	var out []*Run
	for len(k.order) > 0 && now.Sub(k.order[0].since) > KeepFinished {
		out = append(out, k.takeAt(0))
	}
	return out
}

// excess removes and returns the runs above the limits.
func (k *retained) excess() []*Run {
	var out []*Run
	for {
		owner, over := k.mostOwned()
		if !over {
			return out
		}
		for i, kept := range k.order {
			if kept.run.owner == owner {
				out = append(out, k.takeAt(i))
				break
			}
		}
	}
}

// mostOwned returns an owner that is above its limits. If there is no such owner, it returns the
// owner that holds the most, and over reports whether all owners together are above the limits.
func (k *retained) mostOwned() (most caller.Owner, over bool) {
	for owner, held := range k.owned {
		if held.exceeds(maxOwnedRuns, maxOwnedBytes) {
			return owner, true
		}
		largest := k.owned[most]
		if held.bytes > largest.bytes || held.bytes == largest.bytes && held.runs > largest.runs {
			most = owner
		}
	}
	return most, k.total.exceeds(maxRetainedRuns, maxRetainedBytes)
}

// remove removes a run, if it is kept.
func (k *retained) remove(run *Run) {
	for i, kept := range k.order {
		if kept.run == run {
			k.takeAt(i)
			return
		}
	}
}

func (k *retained) takeAt(i int) *Run {
	taken := k.order[i]
	k.order = append(k.order[:i:i], k.order[i+1:]...) // a fresh array, so that the run is freed
	owner := taken.run.owner
	if k.owned[owner] = k.owned[owner].plus(-1, -taken.bytes); k.owned[owner].runs == 0 {
		delete(k.owned, owner)
	}
	k.total = k.total.plus(-1, -taken.bytes)
	return taken.run
}

// size returns the approximate size of the outcome in bytes.
func (r *Run) size() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.outcome == nil {
		return 0
	}
	return len(r.outcome.Stdout) + len(r.outcome.Stderr) + len(r.outcome.Envelope.Result.Data)
}
