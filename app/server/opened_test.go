package server

import (
	"fmt"
	"testing"
	"time"
)

// of is a session of an account with two identities.
func of(account, id string) conversation {
	return conversation{account, account + fmt.Sprint(len(id)%2), id}
}

// opens opens a session whose first request ends at once.
func opens(o *opened, account, id string) (silent string, answer room) {
	begins := of(account, id)
	begins.id = ""
	p, ended, answer := o.reserve(begins)
	if p != nil {
		p.begins(id)
		p.over()
	}
	return ended.id, answer
}

// If a caller exceeds its limit, its least recently used session is evicted, but never one with
// a request in progress.
func TestOneCallersSessions(t *testing.T) {
	o, now := newOpened(), time.Unix(0, 0)
	o.now = func() time.Time { return now }
	for n := range maxSessionsEach {
		now = now.Add(time.Second)
		if silent, answer := opens(o, "ann", fmt.Sprint(n)); silent != "" || answer != granted {
			t.Fatalf("session %d: got %q and %v", n, silent, answer)
		}
	}
	now = now.Add(time.Second)
	o.uses(of("ann", "0"))() // was used more recently than 1
	streamEnds := o.uses(of("ann", "1"))
	for want := range 3 {
		if silent, answer := opens(o, "ann", fmt.Sprint("later ", want)); silent != fmt.Sprint(want+2) || answer != granted {
			t.Errorf("got %q and %v, want the session %d ended", silent, answer, want+2)
		}
	}
	if silent, answer := opens(o, "bob", "0"); silent != "" || answer != granted {
		t.Errorf("another caller: got %q and %v", silent, answer)
	}
	for c := range o.of["ann"] {
		if c.id != "1" {
			defer o.uses(c)()
		}
	}
	if _, answer := opens(o, "ann", "none"); answer != ownTaken {
		t.Errorf("all have a request under way: got %v", answer)
	}
	streamEnds()
	if silent, answer := opens(o, "ann", "again"); silent != "1" || answer != granted {
		t.Errorf("one is silent now: got %q and %v", silent, answer)
	}
}

// Sessions that have ended, failed to open or timed out are not counted.
func TestAllSessions(t *testing.T) {
	o, now := newOpened(), time.Unix(0, 0)
	o.now = func() time.Time { return now }
	for n := range maxSessions {
		if _, answer := opens(o, fmt.Sprint(n/maxSessionsEach), fmt.Sprint(n)); answer != granted {
			t.Fatalf("session %d: got %v", n, answer)
		}
	}
	if _, answer := opens(o, "ann", "x"); answer != allTaken {
		t.Errorf("got %v, want no room", answer)
	}
	o.ended(of("ann", "0")) // another's
	o.ended(of("3", "3999"))
	p, _, answer := o.reserve(of("ann", ""))
	if answer != granted {
		t.Fatalf("one has ended: got %v", answer)
	}
	p.over() // without having begun
	if silent, answer := opens(o, "0", "own"); silent == "" || answer != granted {
		t.Errorf("got %q and %v, want one of its own ended", silent, answer)
	}
	now = now.Add(sessionTimeout + time.Second)
	if _, answer := opens(o, "ann", "y"); answer != granted {
		t.Errorf("all are silent: got %v", answer)
	}
	for range 5 {
		o.ended(of("ann", "y"))
	}
	now = now.Add(sessionTimeout + time.Second)
	o.forgetLocked()
	if o.all != 0 || len(o.of) != 0 {
		t.Errorf("%d sessions of %d callers are left", o.all, len(o.of))
	}
}
