package broker

import "crypto/sha256"

// maxLoopEntries is the maximum number of entries of a detector.
const maxLoopEntries = 4096

// loopDetector counts consecutive calls without progress: the same tool, arguments and result as
// the last time. Polling that sees a change starts again from zero. The zero value is ready to use.
// It is not safe for concurrent use.
type loopDetector struct {
	last map[string]repeat
}

type repeat struct {
	result [sha256.Size]byte
	times  int
}

// times returns the number of consecutive times that a call has returned its last result.
func (d *loopDetector) times(call string) int { return d.last[call].times }

// see records a result.
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
