package server

import (
	"strconv"
	"sync"
	"time"
)

// How many sessions of the protocol may be open over HTTP at one time, of all callers
// and of one. Clients often leave a session without ending it: it ends sessionTimeout
// after its last request, or when its caller begins one too many.
const (
	maxSessions     = 10_000
	maxSessionsEach = 1_000
)

// conversation is a session as the protocol names it: an ID that one identity has.
type conversation struct {
	account  string // that the identity counts for
	identity string
	id       string
}

// opened are the sessions that are open over HTTP, by the account of the caller that began
// them. Its methods may be called concurrently.
type opened struct {
	now func() time.Time

	mu    sync.Mutex                       // guards what follows
	of    map[string]map[conversation]*use // by account; none is empty
	all   int                              // sessions in of
	begun int                              // how many have been reserved ever
}

// use is what is known of a session.
type use struct {
	last     time.Time // when a request began or ended
	requests int       // under way, open streams included
}

func newOpened() *opened { return &opened{now: time.Now, of: map[string]map[conversation]*use{}} }

// room says whether a session may begin.
type room int

const (
	granted  room = iota
	ownTaken      // the account has as many as one may, each with a request under way
	allTaken      // there are as many as there may be
)

// reserve makes room for a session that is begun with a request, and has no ID yet. Where
// the account has as many as it may, the one that has been silent the longest is forgotten,
// and silent, whose ID is empty otherwise: it is to be ended. The place is nil where no
// room is granted.
func (o *opened) reserve(c conversation) (p *place, silent conversation, answer room) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.all >= maxSessions {
		o.forgetLocked()
	}
	if len(o.of[c.account]) >= maxSessionsEach {
		if silent = o.silentLocked(c.account); silent.id == "" {
			return nil, silent, ownTaken
		}
		o.removeLocked(silent)
	}
	if o.all >= maxSessions {
		return nil, silent, allTaken
	}
	o.begun++
	c.id = "\x00" + strconv.Itoa(o.begun) // no session's ID: those are visible ASCII
	o.addLocked(c)
	return &place{in: o, of: c}, silent, granted
}

// place is that of a session that begins.
type place struct {
	in    *opened
	of    conversation
	begun bool
}

// begins says what the session is called.
func (p *place) begins(id string) {
	p.in.mu.Lock()
	defer p.in.mu.Unlock()
	p.in.removeLocked(p.of)
	p.of.id, p.begun = id, true
	p.in.addLocked(p.of)
}

// over says that the request which begins the session is over.
func (p *place) over() {
	p.in.mu.Lock()
	defer p.in.mu.Unlock()
	if !p.begun {
		p.in.removeLocked(p.of)
	} else if u := p.in.of[p.of.account][p.of]; u != nil {
		u.requests--
	}
}

// uses begins a request in a session, which is not silent until done is called.
func (o *opened) uses(c conversation) (done func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	u := o.of[c.account][c]
	if u == nil { // what it is then is the SDK's to say
		return func() {}
	}
	u.requests++
	u.last = o.now()
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		u.requests--
		u.last = o.now()
	}
}

// ended forgets a session.
func (o *opened) ended(c conversation) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.removeLocked(c)
}

// addLocked adds a session with one request under way.
func (o *opened) addLocked(c conversation) {
	if o.of[c.account] == nil {
		o.of[c.account] = map[conversation]*use{}
	}
	o.of[c.account][c] = &use{o.now(), 1}
	o.all++
}

func (o *opened) removeLocked(c conversation) {
	if o.of[c.account][c] == nil {
		return
	}
	o.all--
	if delete(o.of[c.account], c); len(o.of[c.account]) == 0 {
		delete(o.of, c.account)
	}
}

// silentLocked returns the session of an account whose last request is the longest ago
// and over; it has no ID where there is none.
func (o *opened) silentLocked(account string) (silent conversation) {
	var last time.Time
	for c, u := range o.of[account] {
		if u.requests == 0 && (silent.id == "" || u.last.Before(last)) {
			silent, last = c, u.last
		}
	}
	return silent
}

// forgetLocked forgets what has ended for its silence.
func (o *opened) forgetLocked() {
	for _, sessions := range o.of {
		for c, u := range sessions {
			if u.requests == 0 && o.now().Sub(u.last) > sessionTimeout {
				o.removeLocked(c)
			}
		}
	}
}
