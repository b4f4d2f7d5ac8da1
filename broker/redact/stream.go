package redact

import "io"

const (
	// streamOverlap is how much of the newest text a stream holds back: what
	// begins in it may go on in the next write.
	streamOverlap = 4 << 10
	// streamMost is the most that is held back for one value that is still going
	// on, such as a long private key.
	streamMost = 256 << 10
	// streamContext is how much of what was written is remembered: the name
	// before a value, the word before a number.
	streamContext = 1 << 10
)

// Stream cleans text that comes in pieces, as if it came at once, as long as no
// value is longer than 256 KiB.
type Stream struct {
	redactor *Redactor
	to       io.Writer
	held     []byte
	done     int // held[:done] was written, and is kept as context
	enough   int // how much has to be held before it is looked at again
	found    [][]Finding
}

// Stream returns a stream that writes cleaned text to w. It is not for
// concurrent use. Close writes what is held back.
func (r *Redactor) Stream(w io.Writer) *Stream {
	return &Stream{redactor: r, to: w, enough: 2 * streamOverlap}
}

var _ io.WriteCloser = (*Stream)(nil)

// Write takes the next piece. It writes on what can no longer become part of
// anything that is looked for.
func (s *Stream) Write(p []byte) (int, error) {
	s.held = append(s.held, p...)
	if len(s.held) < s.enough {
		return len(p), nil
	}
	if err := s.release(len(s.held) - streamOverlap); err != nil {
		return 0, err
	}
	s.enough = len(s.held) + max(streamOverlap, (len(s.held)-s.done)/2)
	return len(p), nil
}

// Close writes what is left. It does not close the writer below.
func (s *Stream) Close() error { return s.release(len(s.held)) }

// Findings says what was removed so far.
func (s *Stream) Findings() []Finding { return findings(Counts(s.found...)) }

// release writes the held text up to about end: not within a value, and not
// between characters that could belong together.
func (s *Stream) release(end int) error {
	var spans []span
	for _, found := range s.redactor.find(s.held) {
		if found.end > s.done {
			spans = append(spans, span{max(found.start, s.done), found.end, found.kind})
		}
	}
	if end < len(s.held) {
		end = s.boundary(spans, end)
	}
	if end <= s.done {
		return nil
	}
	ready := make([]span, 0, len(spans))
	for _, found := range spans {
		if found.start < end {
			ready = append(ready, span{found.start - s.done, found.end - s.done, found.kind})
		}
	}
	cleaned, found := s.redactor.replace(s.held[s.done:end], ready)
	if len(found) > 0 {
		s.found = append(s.found, found)
	}
	_, err := s.to.Write(cleaned) // before the text moves: it may be the same memory
	from := max(0, end-streamContext)
	s.held, s.done = append(s.held[:0], s.held[from:]...), end-from
	return err
}

// boundary moves end back to where the text may be cut.
func (s *Stream) boundary(spans []span, end int) int {
	if len(s.held)-s.done > streamMost {
		for _, found := range spans { // cut behind what is too long to wait for
			if found.start < end && found.end > end {
				end = found.end
			}
		}
		return end
	}
	for back := end; back > s.done && back > end-streamOverlap/2; back-- {
		if c := s.held[back-1]; c == '\n' || c == ' ' {
			end = back
			break
		}
	}
	for end > s.done && inRun(s.held[end]) && inRun(s.held[end-1]) {
		end--
	}
	for moved := true; moved; {
		moved = false
		for _, found := range spans {
			if found.start < end && found.end > end {
				end, moved = found.start, true
			}
		}
	}
	return end
}

// inRun says whether a character can be within something encoded or escaped.
func inRun(c byte) bool { return encodedBytes[c] || c == '\\' }
