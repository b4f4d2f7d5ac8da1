package server

import (
	"strconv"
	"sync"
	"time"
)

// The maximum number of open protocol sessions over HTTP, for all callers and for one account.
// Clients often leave a session without ending it. Such a session ends sessionTimeout after its
// last request, or when its account exceeds the limit.
const (
	maxSessions     = 10_000
	maxSessionsEach = 1_000
)

// conversation identifies a protocol session: its ID and the identity that owns it.
type conversation struct {
	account  string // the account that the session is counted for
	identity string
	id       string
}

// opened are the open sessions over HTTP, by the account of the caller that opened them. Its
// methods are safe for concurrent use.
type opened struct {
	now func() time.Time

	mu    sync.Mutex                       // guards the fields below
	of    map[string]map[conversation]*use // by account; none is empty
	all   int                              // sessions in of
	begun int                              // the number of all reservations so far
}

// use records the use of a session.
type use struct {
	last     time.Time // when a request began or ended
	requests int       // in progress, including open streams
}

func newOpened() *opened { return &opened{now: time.Now, of: map[string]map[conversation]*use{}} }

// room is the result of a reservation.
type room int

const (
	granted  room = iota
	ownTaken      // the account has reached its limit, and each of its sessions has a request in progress
	allTaken      // the limit for all callers is reached
)

// reserve makes a reservation for a session that has no ID yet. If the account has reached its
// limit, reserve removes its least recently used session and returns it as silent; the caller
// must end that session. Otherwise the ID of silent is empty. p is nil unless the answer is
// granted.
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
	c.id = "\x00" + strconv.Itoa(o.begun) // differs from all session IDs, which are visible ASCII
	o.addLocked(c)
	return &place{in: o, of: c}, silent, granted
}

// place is the reservation of a session that is being opened.
type place struct {
	in    *opened
	of    conversation
	begun bool
}

// begins records the ID of the session.
func (p *place) begins(id string) {
	p.in.mu.Lock()
	defer p.in.mu.Unlock()
	p.in.removeLocked(p.of)
	p.of.id, p.begun = id, true
	p.in.addLocked(p.of)
}

// over is called when the request that opens the session has ended. If the session has no ID
// by then, over releases the reservation.
func (p *place) over() {
	p.in.mu.Lock()
	defer p.in.mu.Unlock()
	if !p.begun {
		p.in.removeLocked(p.of)
	} else if u := p.in.of[p.of.account][p.of]; u != nil {
		u.requests--
	}
}

// uses begins a request in a session. The session is not evicted until done is called.
func (o *opened) uses(c conversation) (done func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	u := o.of[c.account][c]
	if u == nil { // an unknown session: the SDK answers the request
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

// addLocked adds a session with one request in progress.
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

// silentLocked returns the least recently used session of an account without a request in
// progress. Its ID is empty if all sessions have one.
func (o *opened) silentLocked(account string) (silent conversation) {
	var last time.Time
	for c, u := range o.of[account] {
		if u.requests == 0 && (silent.id == "" || u.last.Before(last)) {
			silent, last = c, u.last
		}
	}
	return silent
}

// forgetLocked removes the sessions that have ended because of sessionTimeout.
func (o *opened) forgetLocked() {
	for _, sessions := range o.of {
		for c, u := range sessions {
			if u.requests == 0 && o.now().Sub(u.last) > sessionTimeout {
				o.removeLocked(c)
			}
		}
	}
}
