package replay

import (
	"encoding/json"
	"fmt"
	"sync"

	"github.com/airlock-mcp/airlock/internal/strictjson"
)

// Divergence is the first call of a replay that the recorded run did not make,
// or the first of the recorded run that the replay did not make.
type Divergence struct {
	Number int // which call of the replay it was, from 1
	// Got is what was called, empty when the replay made no more calls; Want is the
	// recorded call that was due, empty when the recorded run made no more.
	Got, Want string
	// Arguments reports that the tool was the recorded one, but not the arguments.
	Arguments bool
}

// Error is one sentence.
func (d *Divergence) Error() string {
	switch {
	case d.Got == "":
		return fmt.Sprintf("call %d was not made: the recorded run called %s", d.Number, d.Want)
	case d.Want == "":
		return fmt.Sprintf("call %d is %s, and the recorded run made no more calls", d.Number, d.Got)
	case d.Arguments:
		return fmt.Sprintf("call %d is %s with other arguments than in the recorded run", d.Number, d.Got)
	}
	return fmt.Sprintf("call %d is %s, where the recorded run called %s", d.Number, d.Got, d.Want)
}

// Player answers calls from a recording. Equal calls get their answers in the order
// in which they were recorded; calls that differ may come in any order, because
// code may make them at once. Methods may be called concurrently.
type Player struct {
	recording *Recording
	keys      []string // by index of the recording's exchanges, see keyOf

	mu       sync.Mutex // guards all below
	played   []bool     // by index of the recording's exchanges
	calls    int
	diverged *Divergence
}

// Player returns a player at the recording's beginning.
func (r *Recording) Player() *Player {
	p := &Player{recording: r, played: make([]bool, len(r.Exchanges))}
	for _, e := range r.Exchanges {
		p.keys = append(p.keys, keyOf(e.ServerID, e.Name, e.Arguments))
	}
	return p
}

// Call returns the recorded answer to a call, or how the replay diverged.
// After that no call is answered.
func (p *Player) Call(serverID, name string, arguments json.RawMessage) (json.RawMessage, *Divergence) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls++
	if p.diverged != nil {
		return nil, p.diverged
	}
	wanted := keyOf(serverID, name, arguments)
	for i, key := range p.keys {
		if !p.played[i] && key == wanted {
			p.played[i] = true
			return p.recording.Exchanges[i].Answer, nil
		}
	}
	p.diverged = p.divergence(serverID, name)
	return nil, p.diverged
}

func (p *Player) divergence(serverID, name string) *Divergence {
	d := &Divergence{Number: p.calls, Got: serverID + "/" + name}
	for i, e := range p.recording.Exchanges {
		if p.played[i] {
			continue
		}
		if d.Want == "" {
			d.Want = e.ServerID + "/" + e.Name
		}
		d.Arguments = d.Arguments || (e.ServerID == serverID && e.Name == name)
	}
	return d
}

// Diverged returns how a finished replay diverged, or nil. A replay that made fewer calls
// than recorded has diverged too, even with an equal result.
func (p *Player) Diverged() *Divergence {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.diverged != nil {
		return p.diverged
	}
	for i, played := range p.played {
		if !played {
			return &Divergence{Number: p.calls + 1,
				Want: p.recording.Exchanges[i].ServerID + "/" + p.recording.Exchanges[i].Name}
		}
	}
	return nil
}

// keyOf returns equal keys for calls with equal arguments, independent of the order of
// members. Numbers are compared digit by digit.
func keyOf(serverID, name string, arguments json.RawMessage) string {
	text := []byte("{}")
	if len(arguments) > 0 {
		text = arguments
		if v, err := strictjson.Value(arguments); err == nil {
			if sorted, err := json.Marshal(v); err == nil {
				text = sorted
			}
		}
	}
	return fmt.Sprintf("%q %q %s", serverID, name, text)
}
