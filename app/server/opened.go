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

// opened are the sessions that are open over HTTP, by the identity that began them. Its
// methods may be called concurrently.
type opened struct {
	now func() time.Time

	mu    sync.Mutex                 // guards what follows
	of    map[string]map[string]*use // by identity, by session ID; none is empty
	all   int                        // sessions in of
	begun int                        // how many have been reserved ever
}

// use is what is known of a session.
type use struct {
	last     time.Time // when a request began or ended
	requests int       // under way, open streams included
}

func newOpened() *opened { return &opened{now: time.Now, of: map[string]map[string]*use{}} }

// room says whether a session may begin.
type room int

const (
	granted  room = iota
	ownTaken      // the caller has as many as one caller may, each with a request under way
	allTaken      // there are as many as there may be
)

// reserve makes room for a session that an identity begins with a request. Where the
// identity has as many as it may, the one that has been silent the longest is forgotten,
// and silent is its ID: the caller ends it. The place is nil where no room is granted.
func (o *opened) reserve(identity string) (p *place, silent string, answer room) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.all >= maxSessions {
		o.forgetLocked()
	}
	if len(o.of[identity]) >= maxSessionsEach {
		if silent = o.silentLocked(identity); silent == "" {
			return nil, "", ownTaken
		}
		o.removeLocked(identity, silent)
	}
	if o.all >= maxSessions {
		return nil, silent, allTaken
	}
	o.begun++
	p = &place{in: o, identity: identity, id: "\x00" + strconv.Itoa(o.begun)} // no session's ID: those are visible ASCII
	o.addLocked(identity, p.id)
	return p, silent, granted
}

// place is that of a session that begins.
type place struct {
	in       *opened
	identity string
	id       string
	begun    bool
}

// begins says what the session is called.
func (p *place) begins(id string) {
	p.in.mu.Lock()
	defer p.in.mu.Unlock()
	p.in.removeLocked(p.identity, p.id)
	p.id, p.begun = id, true
	p.in.addLocked(p.identity, id)
}

// over says that the request which begins the session is over.
func (p *place) over() {
	p.in.mu.Lock()
	defer p.in.mu.Unlock()
	if !p.begun {
		p.in.removeLocked(p.identity, p.id)
	} else if u := p.in.of[p.identity][p.id]; u != nil {
		u.requests--
	}
}

// uses begins a request in a session, which is not silent until done is called.
func (o *opened) uses(identity, id string) (done func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	u := o.of[identity][id]
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
func (o *opened) ended(identity, id string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.removeLocked(identity, id)
}

// addLocked adds a session with one request under way.
func (o *opened) addLocked(identity, id string) {
	if o.of[identity] == nil {
		o.of[identity] = map[string]*use{}
	}
	o.of[identity][id] = &use{o.now(), 1}
	o.all++
}

func (o *opened) removeLocked(identity, id string) {
	if o.of[identity][id] == nil {
		return
	}
	o.all--
	if delete(o.of[identity], id); len(o.of[identity]) == 0 {
		delete(o.of, identity)
	}
}

// silentLocked returns the session of an identity whose last request is the longest ago
// and over, or "" where there is none.
func (o *opened) silentLocked(identity string) (silent string) {
	var last time.Time
	for id, u := range o.of[identity] {
		if u.requests == 0 && (silent == "" || u.last.Before(last)) {
			silent, last = id, u.last
		}
	}
	return silent
}

// forgetLocked forgets what has ended for its silence.
func (o *opened) forgetLocked() {
	for identity, sessions := range o.of {
		for id, u := range sessions {
			if u.requests == 0 && o.now().Sub(u.last) > sessionTimeout {
				o.removeLocked(identity, id)
			}
		}
	}
}
