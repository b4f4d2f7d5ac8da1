package redact

// automaton finds many short words in one pass over a text, whatever their case
// (A. Aho, M. Corasick, "Efficient string matching", CACM 18(6), 1975). It is
// immutable once built.
type automaton struct {
	next []([256]uint16) // by state and byte: the next state
	out  [][]int         // by state: which words end here
}

// newAutomaton takes lower-case words. Together they may have at most 65,535 bytes.
func newAutomaton(words []string) *automaton {
	a := &automaton{next: make([][256]uint16, 1), out: make([][]int, 1)}
	for i, word := range words {
		state := uint16(0)
		for _, c := range []byte(word) {
			if a.next[state][c] == 0 {
				a.next = append(a.next, [256]uint16{})
				a.out = append(a.out, nil)
				a.next[state][c] = uint16(len(a.next) - 1)
			}
			state = a.next[state][c]
		}
		a.out[state] = append(a.out[state], i)
	}
	a.link()
	return a
}

// link turns the trie into an automaton: where a state has no way on, it goes
// where its longest proper suffix would go.
func (a *automaton) link() {
	fail := make([]uint16, len(a.next))
	var queue []uint16
	for c := range 256 {
		if s := a.next[0][c]; s != 0 {
			queue = append(queue, s)
		}
	}
	for len(queue) > 0 {
		s := queue[0]
		queue = queue[1:]
		a.out[s] = append(a.out[s], a.out[fail[s]]...)
		for c := range 256 {
			t := a.next[s][c]
			if t == 0 {
				a.next[s][c] = a.next[fail[s]][c]
				continue
			}
			fail[t] = a.next[fail[s]][c]
			queue = append(queue, t)
		}
	}
	for s := range a.next { // case costs nothing
		for c := 'A'; c <= 'Z'; c++ {
			a.next[s][c] = a.next[s][c+'a'-'A']
		}
	}
}

// scan calls found with each word and the place where it ends.
func (a *automaton) scan(text []byte, found func(word, end int)) {
	state := uint16(0)
	for i, c := range text {
		state = a.next[state][c]
		for _, word := range a.out[state] {
			found(word, i+1)
		}
	}
}
