package broker

import "crypto/sha256"

// maxLoopEntries bounds what a detector remembers.
const maxLoopEntries = 4096

// loopDetector counts how often a call brought nothing new: the same tool, the
// same arguments, the same result as the last time. Polling that sees a change
// starts anew. The zero value is ready; the caller guards it.
type loopDetector struct {
	last map[string]repeat
}

type repeat struct {
	result [sha256.Size]byte
	times  int
}

// times returns how often in a row a call has returned its last result.
func (d *loopDetector) times(call string) int { return d.last[call].times }

// see notes a result.
func (d *loopDetector) see(call string, result []byte) {
	if d.last == nil || len(d.last) >= maxLoopEntries {
		d.last = map[string]repeat{}
	}
	sum := sha256.Sum256(result)
	r := d.last[call]
	if r.result != sum {
		r = repeat{result: sum}
	}
	r.times++
	d.last[call] = r
}
