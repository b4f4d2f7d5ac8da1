package runner

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/airlock-mcp/airlock/internal/telemetry"
)

// pool keeps idle sandboxes, so that a run need not wait for one to start. Each is used
// once and never returned to the pool.
type pool struct {
	runner *Runner
	base   int   // sandboxes to keep for each kind of request; with 0 only templates are kept
	budget int64 // bytes that all waiting sandboxes and templates may take

	idle time.Duration // without use, after which the pool goes back to base

	mu      sync.Mutex
	shelves map[string]*shelf
	filling int         // starts under way, over all shelves
	awaited int         // starts under way for runs that found nothing ready
	shrink  *time.Timer // set while there may be something to close
}

// shelf holds the sandboxes for one kind of request.
type shelf struct {
	req      Request
	ready    []*Sandbox // oldest first
	pending  int        // being started
	size     int64      // bytes of one idle sandbox, as last measured
	template *sharedTemplate
	saving   savingState
	target   int
	asked    int       // how often a sandbox was taken from it, since it was made or had no use for the idle time
	used     time.Time // when something was last asked of it
	missed   time.Time // when it was last found empty, or shrank
	failed   bool      // the last start for it failed, and nobody has asked for it since
	dropped  bool
}

// savingState is the progress of creating a shelf's template.
type savingState int

const (
	unsaved  savingState = iota // no template was tried yet
	saving                      // a template is being made
	saved                       // there is one
	unsaving                    // the driver cannot, or it failed: start from the beginning
)

// How a pool adapts.
const (
	maxFills    = 2        // starts at once to keep sandboxes ready
	assumedSize = 64 << 20 // bytes of an idle sandbox, if its size cannot be read

	// refillDelay is how long a sandbox that was taken has the processors before the
	// next one is started: most runs are over by then.
	refillDelay = 15 * time.Millisecond
	// spareDelay is the maximum of that time while another sandbox is ready: then the next one is started when the run
	// has ended. A start takes as much processor time as hundreds of calls.
	spareDelay = 500 * time.Millisecond
)

func newPool(r *Runner) *pool {
	return &pool{runner: r, base: r.opts.Pool, budget: r.opts.PoolMemory, idle: r.opts.PoolIdle,
		shelves: map[string]*shelf{}}
}

// key is equal for requests that one sandbox can serve.
func (r Request) key() string {
	data, err := json.Marshal(r)
	if err != nil {
		panic(err) // plain data always marshals
	}
	return string(data)
}

// take returns a waiting sandbox, or nil; then the template to start one from,
// if there is one: its use must be ended with done, and the start with started.
// Either way more sandboxes will be ready next time.
func (p *pool) take(req Request) (*Sandbox, *sharedTemplate) {
	p.mu.Lock()
	defer p.mu.Unlock()
	shelf := p.shelfLocked(req)
	refill := func() { p.refill(shelf) }
	defer func() {
		if len(shelf.ready) > 0 {
			time.AfterFunc(spareDelay, refill)
		} else {
			time.AfterFunc(refillDelay, refill)
		}
	}()
	shelf.used = time.Now()
	shelf.asked++
	p.shrinkLaterLocked()
	for len(shelf.ready) > 0 {
		s := shelf.ready[0]
		shelf.ready = shelf.ready[1:]
		if !s.hasEnded() {
			s.whenClosed(refill)
			return s, nil
		}
		p.runner.release(s)
	}
	p.awaited++
	shelf.missed = shelf.used
	if p.base > 0 {
		// The target grows to the largest burst that the queue admits; memory limits what is started.
		shelf.target = min(shelf.target+1, max(p.base, p.runner.opts.MaxSandboxes+p.runner.opts.MaxWaiting))
	}
	if shelf.template != nil && shelf.template.use() {
		return nil, shelf.template
	}
	return nil, nil
}

// started ends the start of a sandbox that a run waited for, because take returned none.
func (p *pool) started() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.awaited--
	time.AfterFunc(refillDelay, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.fillAllLocked()
	})
}

// template returns the template of a request, or nil. Its use must be ended with done.
func (p *pool) template(req Request) *sharedTemplate {
	p.mu.Lock()
	defer p.mu.Unlock()
	if found := p.shelves[req.key()]; found != nil && found.template != nil && found.template.use() {
		return found.template
	}
	return nil
}

// warm makes sure that sandboxes for the request will be ready.
func (p *pool) warm(req Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	shelf := p.shelfLocked(req)
	shelf.used, shelf.failed = time.Now(), false
	p.fillLocked(shelf)
}

// waiting is how many sandboxes are ready.
func (p *pool) waiting() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for _, s := range p.shelves {
		n += len(s.ready)
	}
	return n
}

// refill starts what is missing on a shelf, unless it was dropped meanwhile.
func (p *pool) refill(s *shelf) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !s.dropped {
		s.failed = false
		p.fillLocked(s)
	}
}

// shelfLocked finds the shelf for a request, or makes one.
func (p *pool) shelfLocked(req Request) *shelf {
	key := req.key()
	if found := p.shelves[key]; found != nil {
		return found
	}
	made := &shelf{req: req, size: assumedSize, target: p.base, used: time.Now()}
	if _, ok := p.runner.driver.(Saver); !ok || req.Image.Unsaved || req.Image.Fresh {
		made.saving = unsaving
	}
	p.shelves[key] = made
	p.dropOlderLocked(made)
	return made
}

// dropOlderLocked removes the shelves of the same image that were used before
// this one and not for the idle time, as after a change of the wrappers.
func (p *pool) dropOlderLocked(newer *shelf) {
	for key, s := range p.shelves {
		if s.req.Image.Name == newer.req.Image.Name && s.used.Before(newer.used) && time.Since(s.used) >= p.idle {
			delete(p.shelves, key)
			s.dropped = true
			p.clearLocked(s)
		}
	}
}

// hasOlderLocked reports whether dropOlderLocked will have something to remove.
func (p *pool) hasOlderLocked(newer *shelf) bool {
	for _, s := range p.shelves {
		if s.req.Image.Name == newer.req.Image.Name && s.used.Before(newer.used) {
			return true
		}
	}
	return false
}

// clearLocked closes all that a dropped shelf has.
func (p *pool) clearLocked(s *shelf) {
	for _, sandbox := range s.ready {
		p.runner.release(sandbox)
	}
	s.ready = nil
	if s.template != nil {
		p.report(s.template.retire())
		s.template = nil
	}
}

// minRequests is the number of requests for a sandbox after which a template is saved, if
// none are kept ready. A process that makes a single run does not reach it.
const minRequests = 2

// fillLocked starts what is missing, as far as processors and memory allow.
func (p *pool) fillLocked(s *shelf) {
	for p.lacksLocked(s) && p.hasProcessorLocked() && p.admitsLocked(s) {
		ctx, done, err := p.runner.enter(context.Background())
		if err != nil {
			return // the runner closes
		}
		job := p.fill
		if s.saving == unsaved {
			s.saving, job = saving, p.save
		}
		s.pending++
		p.filling++
		go func() {
			defer done()
			err := job(ctx, s)
			p.filled(s, err)
		}()
	}
}

// fillAllLocked starts what is missing on all shelves, first on those with the fewest sandboxes: a shelf gets nothing
// while the starts for others take all processors. After a failure nothing is started for a shelf until someone asks
// again.
func (p *pool) fillAllLocked() {
	for _, s := range slices.SortedFunc(maps.Values(p.shelves), func(a, b *shelf) int {
		return cmp.Compare(len(a.ready)+a.pending, len(b.ready)+b.pending)
	}) {
		if !s.failed {
			p.fillLocked(s)
		}
	}
}

// hasProcessorLocked reports whether a processor is left to keep a sandbox ready. Starts that runs wait for come first:
// they also take less, because a guest that is awaited loads nothing ahead.
func (p *pool) hasProcessorLocked() bool {
	return p.filling < maxFills && p.filling+p.awaited < max(maxFills, runtime.GOMAXPROCS(0))
}

// admitsLocked reports whether memory allows another start for a shelf. For a shelf with less than the base,
// it closes a surplus sandbox of the shelf that was not used for the longest time.
func (p *pool) admitsLocked(s *shelf) bool {
	if p.usedLocked() < p.budget {
		return true
	}
	if len(s.ready)+s.pending >= p.base {
		return false
	}
	var oldest *shelf
	for _, other := range p.shelves {
		if len(other.ready) > p.base && (oldest == nil || other.used.Before(oldest.used)) {
			oldest = other
		}
	}
	if oldest == nil {
		return false
	}
	oldest.target = p.base
	p.runner.release(oldest.ready[0])
	oldest.ready = oldest.ready[1:]
	return true
}

// lacksLocked reports whether something is to be started for a shelf now.
func (p *pool) lacksLocked(s *shelf) bool {
	switch {
	case s.saving == saving:
		return false // the next sandbox starts from the template
	case p.base == 0:
		return s.saving == unsaved && s.asked >= minRequests
	}
	return len(s.ready)+s.pending < s.target
}

// shrinkLaterLocked makes sure that shrinkIdle runs some time after the last use.
func (p *pool) shrinkLaterLocked() {
	if p.shrink == nil {
		p.shrink = time.AfterFunc(p.idle, p.shrinkIdle)
	}
}

// shrinkIdle closes what is beyond the base on each shelf that was not used or
// not found empty for the idle time: all of it on an unused one, one sandbox on a
// used one. It runs again until there is nothing more to close.
func (p *pool) shrinkIdle() {
	_, done, err := p.runner.enter(context.Background())
	if err != nil {
		return // the runner closes
	}
	defer done()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.shrink = nil
	more := false
	for _, s := range p.shelves {
		p.dropOlderLocked(s)
	}
	for _, s := range p.shelves {
		switch {
		case time.Since(s.used) >= p.idle:
			s.target = p.base
			p.evictLocked(s)
		case s.target > p.base && time.Since(s.missed) >= p.idle:
			s.target--
			s.missed = time.Now()
		}
		for len(s.ready) > s.target {
			p.runner.release(s.ready[0])
			s.ready = s.ready[1:]
		}
		more = more || s.target > p.base || len(s.ready)+s.pending > p.base || p.base == 0 && s.asked > 0 ||
			p.hasOlderLocked(s)
	}
	if more {
		p.shrinkLaterLocked()
	}
}

// evictLocked closes the template of an unused shelf if nothing is to be kept.
func (p *pool) evictLocked(s *shelf) {
	if p.base > 0 || s.saving == saving {
		return
	}
	s.asked = 0
	if s.template != nil {
		p.report(s.template.retire())
		s.template, s.saving = nil, unsaved
	}
}

// usedLocked estimates the memory of everything that waits or is being started.
func (p *pool) usedLocked() int64 {
	var bytes int64
	for _, s := range p.shelves {
		for _, sandbox := range s.ready {
			bytes += cost(sandbox)
		}
		bytes += int64(s.pending) * s.size
		if s.template != nil {
			bytes += s.template.Size()
		}
	}
	return bytes
}

func cost(s *Sandbox) int64 {
	if peak := s.Usage().PeakMemory; peak > 0 {
		return peak
	}
	return assumedSize
}

// fill starts one sandbox for a shelf.
func (p *pool) fill(ctx context.Context, s *shelf) error {
	p.mu.Lock()
	from := s.template
	if from != nil && !from.use() {
		from = nil
	}
	p.mu.Unlock()
	sandbox, err := p.runner.open(ctx, s.req, from, whenReady)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	s.ready, s.size = append(s.ready, sandbox), cost(sandbox)
	return nil
}

// save makes the template of a shelf.
func (p *pool) save(ctx context.Context, s *shelf) error {
	t, err := p.runner.makeTemplate(ctx, s.req, never)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		s.saving = unsaving
		return err
	}
	s.template, s.saving = &sharedTemplate{Template: t}, saved
	return nil
}

// filled ends a start for a shelf and goes on with what is missing.
func (p *pool) filled(s *shelf, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s.pending--
	p.filling--
	s.failed = err != nil
	p.report(err)
	if s.dropped {
		p.clearLocked(s)
	}
	p.fillAllLocked()
}

func (p *pool) report(err error) {
	if err == nil || errors.Is(err, ErrClosed) {
		return
	}
	p.runner.opts.Logger.WarnContext(context.Background(), "sandboxes could not be kept ready",
		slog.Any(telemetry.KeyError, err))
}

// close closes the templates and prevents further starts. The caller must close the idle
// sandboxes.
func (p *pool) close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var errs []error
	for _, s := range p.shelves {
		if s.template != nil {
			errs = append(errs, s.template.retire())
		}
	}
	p.shelves = map[string]*shelf{}
	if p.shrink != nil {
		p.shrink.Stop()
	}
	return errors.Join(errs...)
}
