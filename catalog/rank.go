package catalog

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

const (
	gramShare  = 0.3  // weight of the letter sequences against the words
	coverShare = 0.5  // how much more a tool scores that has all of the question
	nameShare  = 0.08 // weight of a name that was asked for as a whole, likewise
	// deprecatedShare is the factor on the score of a deprecated tool, unless the
	// question asks for deprecated tools.
	deprecatedShare = 0.5
)

// The relevance floor. A question of few words must be met in nearly all of
// them, a long one in some: floors gives, by the number of terms, the share of
// the part of the question that the best hit must match. Tools that have much
// less of it than the best one are left out, too.
var floors = [...]float32{0, 0.6, 0.45, 0.3, 0.235, 0.217, 0.2, 0.195, 0.185, 0.174, 0.172, 0.168, 0.163, 0.15, 0.125,
	0.125}

const (
	// actionOnly is what is left of the proof of a tool that has none of the things
	// that a question asks for; thingProof is what a thing must have at least.
	actionOnly = 0.5
	thingProof = 0.25
	tailShare  = 0.2 // of the best hit's proof
	// bestAmong is how many of the first hits may have the proof that something fits.
	bestAmong = 10
)

// hit is one document that a question found.
type hit struct {
	doc   int
	score float32
	proof float32 // how much of the question it has, 0 to 1
}

// search returns the documents that fit the question, best first; equal ones stay in
// document order. It skips documents for which keep returns false. It returns nothing if
// the best document matches too little of the question.
func (x *index) search(question string, keep func(doc int) bool) []hit {
	question = strings.TrimSpace(question)
	question = question[:min(len(question), maxQueryBytes)]
	terms := x.asked(question)
	s := x.score(terms)
	s.addNames(x)
	s.addGrams(x, contentWords(question, maxQueryWords))
	asked := slices.ContainsFunc(terms, func(t term) bool {
		return slices.ContainsFunc(t.alternatives,
			func(a alternative) bool { return a.stem == deprecatedStem && a.worth == 1 })
	})
	var hits []hit
	for doc, score := range s.scores {
		proof := s.proof(doc)
		if score <= 0 || proof <= 0 || !keep(doc) {
			continue
		}
		if x.faded[doc] && !asked {
			score *= deprecatedShare
		}
		hits = append(hits, hit{doc, score * (1 + coverShare*proof), proof})
	}
	hits = aboveFloor(hits, len(terms))
	slices.SortFunc(hits, better)
	return hits
}

// better orders hits, best first.
func better(a, b hit) int { return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.doc, b.doc)) }

var deprecatedStem = stem("deprecated")

// aboveFloor leaves out what does not fit a question of n terms.
func aboveFloor(hits []hit, n int) []hit {
	var best float32
	for _, h := range first(hits) {
		best = max(best, h.proof)
	}
	if best < floors[min(n, len(floors)-1)] {
		return nil
	}
	return slices.DeleteFunc(hits, func(h hit) bool { return h.proof < tailShare*best })
}

// first returns the bestAmong best hits, best first.
func first(hits []hit) []hit {
	var top []hit
	for _, h := range hits {
		if len(top) == bestAmong && better(top[bestAmong-1], h) < 0 {
			continue
		}
		at, _ := slices.BinarySearchFunc(top, h, better)
		top = slices.Insert(top[:min(len(top), bestAmong-1)], at, h)
	}
	return top
}

// scoring is what one question makes of each document.
type scoring struct {
	scores   []float32
	proofs   []float32
	things   []bool    // it has a thing that was asked for
	names    []float32 // the worth of the words of the name that were asked for
	possible float32   // the sum of what the terms are worth at best
	mass     float32   // of all terms
	thing    bool      // a thing was asked for
}

// proof is how much of the question a document has, 0 to 1.
func (s *scoring) proof(doc int) float32 {
	proof := min(1, s.proofs[doc]/s.mass)
	if s.thing && !s.things[doc] {
		proof *= actionOnly
	}
	return proof
}

// score adds what each term is worth: the best of its alternatives that a
// document has.
func (x *index) score(terms []term) *scoring {
	s := &scoring{scores: make([]float32, x.size), proofs: make([]float32, x.size), names: make([]float32, x.size),
		things: make([]bool, x.size)}
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
				proof[p.doc] = max(proof[p.doc], a.proof*p.sure)
			}
			for _, p := range x.names[a.stem] {
				s.names[p.doc] += p.weight * a.worth
			}
		}
		var best float32
		for _, doc := range touched {
			best = max(best, worth[doc])
			s.scores[doc] += worth[doc]
			s.proofs[doc] += proof[doc] * t.credit
			s.things[doc] = s.things[doc] || t.thing && proof[doc] >= thingProof
			worth[doc], proof[doc] = 0, 0
		}
		s.possible += best
		s.mass += t.mass
		s.thing = s.thing || t.thing
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
