package runs

import (
	"time"

	"github.com/airlock-mcp/airlock/internal/caller"
)

// How long finished runs can be asked for, and how many. Runs that are queued
// or running are never forgotten. What goes first is the oldest finished run of
// the owner that holds the most, so that no caller's runs evict another's.
const (
	keepFinished     = time.Hour
	maxOwnedRuns     = 64       // finished runs of one owner
	maxOwnedBytes    = 16 << 20 // of their results and output
	maxRetainedRuns  = 1024     // of all owners
	maxRetainedBytes = 64 << 20
)

// retained are the finished runs that are still kept. The zero value is ready.
// The registry's lock guards it.
type retained struct {
	order []keptRun // by when they finished
	owned map[caller.Owner]holding
	total holding
}

// keptRun is a finished run with what it counts for.
type keptRun struct {
	run   *Run
	since time.Time
	bytes int
}

// holding is how much an owner, or all of them, hold.
type holding struct{ runs, bytes int }

func (h holding) plus(runs, bytes int) holding { return holding{h.runs + runs, h.bytes + bytes} }

// exceeds reports whether more is held than allowed. A single run may be larger
// than the bytes allow: it is bounded itself.
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

// expired takes out the runs that finished too long ago.
func (k *retained) expired(now time.Time) []*Run {
	var out []*Run
	for len(k.order) > 0 && now.Sub(k.order[0].since) > keepFinished {
		out = append(out, k.takeAt(0))
	}
	return out
}

// excess takes out the runs past the limits.
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

// mostOwned returns the owner that is past its limits, or, where all of them
// together are, the one that holds the most.
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

// remove takes one run out, if it is here.
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

// size is about how many bytes the outcome holds.
func (r *Run) size() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.outcome == nil {
		return 0
	}
	return len(r.outcome.Stdout) + len(r.outcome.Stderr) + len(r.outcome.Envelope.Result.Data)
}
