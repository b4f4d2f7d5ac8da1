package catalog

import (
	"cmp"
	"math"
	"slices"
)

const (
	gramShare = 0.2  // weight of the letter sequences against the words
	nameShare = 0.08 // weight of a name that was asked for as a whole, likewise
	// deprecatedShare is what is left of the score of a tool that says of itself
	// that it is deprecated, unless the question asks for such tools.
	deprecatedShare = 0.5
)

// The relevance floor. A question of few words must be met in nearly all of
// them, a long one in some: floors gives, by the number of terms, the share of
// what the question asks for that the best hit must have. Tools that have much
// less of it than the best one are left out, too.
var floors = [...]float32{0, 0.5, 0.46, 0.3, 0.19, 0.12, 0.1, 0.09, 0.08, 0.07, 0.06, 0.055, 0.05, 0.05, 0.05, 0.04}

const (
	tailShare = 0.2 // of the best hit's proof
	// bestAmong is how many of the first hits may have the proof that something fits.
	bestAmong = 10
)

// hit is one document that a question found.
type hit struct {
	doc   int
	score float32
	proof float32 // how much of the question it has, 0 to 1
}

// search returns the documents that fit the question, best first; equal ones
// stay in order of the documents. Only documents for which keep says true are
// returned. None are when the best of them has too little of the question.
func (x *index) search(question string, keep func(doc int) bool) []hit {
	terms := x.asked(question)
	s := x.score(terms)
	s.addNames(x)
	s.addGrams(x, contentWords(question[:min(len(question), maxQueryBytes)], maxQueryWords))
	asked := slices.ContainsFunc(terms, func(t term) bool {
		return slices.ContainsFunc(t.alternatives, func(a alternative) bool { return a.stem == deprecatedStem && a.worth == 1 })
	})
	var hits []hit
	for doc, score := range s.scores {
		if x.faded[doc] && !asked {
			score *= deprecatedShare
		}
		if score > 0 && s.proofs[doc] > 0 && keep(doc) {
			hits = append(hits, hit{doc, score, s.proofs[doc] / s.mass})
		}
	}
	slices.SortStableFunc(hits, func(a, b hit) int { return cmp.Compare(b.score, a.score) })
	return aboveFloor(hits, len(terms))
}

var deprecatedStem = stem("deprecated")

// aboveFloor leaves out what does not fit a question of n terms.
func aboveFloor(hits []hit, n int) []hit {
	var best float32
	for _, h := range hits[:min(bestAmong, len(hits))] {
		best = max(best, h.proof)
	}
	if best < floors[min(n, len(floors)-1)] {
		return nil
	}
	return slices.DeleteFunc(hits, func(h hit) bool { return h.proof < tailShare*best })
}

// scoring is what one question makes of each document.
type scoring struct {
	scores   []float32
	proofs   []float32
	names    []float32 // the worth of the words of the name that were asked for
	possible float32   // the sum of what the terms are worth at best
	mass     float32   // of all terms
}

// score adds what each term is worth: the best of its alternatives that a
// document has.
func (x *index) score(terms []term) *scoring {
	s := &scoring{scores: make([]float32, x.size), proofs: make([]float32, x.size), names: make([]float32, x.size)}
	worth, proof := make([]float32, x.size), make([]float32, x.size)
	var touched []int32
	for _, t := range terms {
		touched = touched[:0]
		for _, a := range t.alternatives {
			for _, p := range x.words[a.stem] {
				if worth[p.doc] == 0 {
					touched = append(touched, p.doc)
				}
				worth[p.doc] = max(worth[p.doc], p.weight*a.worth)
				sure := a.proof
				if p.aside {
					sure *= asideProof
				}
				proof[p.doc] = max(proof[p.doc], sure)
			}
			for _, p := range x.names[a.stem] {
				s.names[p.doc] += p.weight * a.worth
			}
		}
		var best float32
		for _, doc := range touched {
			best = max(best, worth[doc])
			s.scores[doc] += worth[doc]
			s.proofs[doc] += proof[doc] * t.mass
			worth[doc], proof[doc] = 0, 0
		}
		s.possible += best
		s.mass += t.mass
	}
	s.mass = max(s.mass, math.SmallestNonzeroFloat32)
	return s
}

// addNames adds something for names that were asked for as a whole.
func (s *scoring) addNames(x *index) {
	for doc, found := range s.names {
		if found > 0 && x.nameRange[doc] > 0 {
			s.scores[doc] += nameShare * min(1, found/x.nameRange[doc]) * s.possible
		}
	}
}

// addGrams adds the cosine of the letter sequences.
func (s *scoring) addGrams(x *index, words []string) {
	counts := map[string]float64{}
	var order []string
	for _, word := range words {
		eachGram(word, func(gram string) {
			if x.grams[gram] == nil {
				return
			}
			if counts[gram] == 0 {
				order = append(order, gram)
			}
			counts[gram]++
		})
	}
	var squares float64
	for _, gram := range order {
		w := (1 + math.Log(counts[gram])) * x.gramRarity(len(x.grams[gram]))
		counts[gram] = w
		squares += w * w
	}
	if squares == 0 {
		return
	}
	scale := gramShare * max(float64(s.possible), 1) / math.Sqrt(squares)
	for _, gram := range order {
		w := float32(counts[gram] * scale)
		for _, p := range x.grams[gram] {
			s.scores[p.doc] += w * p.weight
		}
	}
}
