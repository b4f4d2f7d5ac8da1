package codegen

// detail limits how much of a signature is written.
type detail struct {
	depth    int // records below this depth become tables of anything; 0 means no limit
	literals int // more values of one enum become their kind; 0 means no limit
	prose    int // maximum bytes of a field's description; 0 omits it
}

// maxSignature is how many bytes the types of one tool take, in and out. Of the
// corpus's 730 tools 728 need less.
const maxSignature = 8 << 10

// details go from everything to little. A signature is written in the first
// that is short enough.
var details = []detail{
	{prose: 400},
	{prose: 160},
	{prose: 60, literals: 64},
	{depth: 3, literals: 16},
	{depth: 2, literals: 8},
	{depth: 1, literals: 4},
}

// shortest calls write with less and less detail until it reports that the
// types were short enough. It returns the detail that was, and false when even
// the least was too long.
func shortest(write func(detail) bool) (level int, ok bool) {
	for i, d := range details {
		if write(d) {
			return i, true
		}
	}
	return len(details), false
}

// noteShortened remembers that a signature was not written in full.
func (g *generator) noteShortened(w *wrapper, level int) {
	if level > 0 {
		w.shortened = true
		g.warn(w.tool, "has a shortened signature: its types would be too long to read")
	}
}
