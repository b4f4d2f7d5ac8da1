package catalog

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// The ranking is BM25F (Robertson, Zaragoza: "The Probabilistic Relevance
// Framework: BM25 and Beyond", 2009, section 3.6) over the stems of a tool's
// fields, plus the cosine of letter sequences, which forgives typing errors and
// words that were written together. The constants lie on a wide plateau: half
// or twice as much moves nDCG@10 of no retrieval set by more than about 0.02.
const (
	saturation    = 1.6 // k1: how soon a repeated word stops counting
	lengthPenalty = 0.4 // b: how much a long field dilutes its words
	gramShare     = 0.4 // weight of the letter sequences against the words
	gramLength    = 4   // letters in a sequence
	// deprecatedShare is what is left of the score of a tool that says of itself
	// that it is deprecated, unless the question asks for such tools.
	deprecatedShare = 0.5
)

// field is one part of a tool's definition that is searched.
type field int

const (
	fieldServer field = iota
	fieldName
	fieldTitle
	fieldDescription
	fieldParameters
	fieldParameterText
	fieldCount
)

// fieldWeights say what a word is worth where it stands.
var fieldWeights = [fieldCount]float64{
	fieldServer: 0.3, fieldName: 3, fieldTitle: 2, fieldDescription: 1, fieldParameters: 1, fieldParameterText: 0.8,
}

// Limits on the text that is indexed and asked for, so that a hostile
// definition or question costs little.
const (
	maxFieldWords = 1000
	maxQueryWords = 200
	maxRepeats    = 3 // how often one word counts in one field
)

// index answers searches over tools in fixed order. It never changes once built.
type index struct {
	size  int
	words postings // by stem
	grams postings // by letter sequence
	faded []bool   // by document: it is deprecated
}

// postings lists for each key the documents that contain it.
type postings map[string][]posting

// posting says how much one key counts for one document, rarity included.
type posting struct {
	doc    int32
	weight float32
}

// fields are the searched texts of one tool, cut into words.
type fields [fieldCount][]string

// document is one tool as it is searched.
type document struct {
	fields
	deprecated bool
}

func newIndex(docs []document) *index {
	var mean [fieldCount]float64 // words per field
	for i := range docs {
		for f, words := range docs[i].fields {
			mean[f] += float64(len(words)) / float64(len(docs))
		}
	}
	x := &index{size: len(docs), words: postings{}, grams: postings{}, faded: make([]bool, len(docs))}
	for i := range docs {
		x.addWords(int32(i), &docs[i].fields, &mean)
		x.addGrams(int32(i), &docs[i].fields)
		x.faded[i] = docs[i].deprecated
	}
	x.finishWords()
	x.finishGrams()
	return x
}

// addWords notes how often each stem stands in a document, by the weight of
// the field and less for long fields.
func (x *index) addWords(doc int32, text *fields, mean *[fieldCount]float64) {
	for f, words := range text {
		dilution := 1 - lengthPenalty + lengthPenalty*float64(len(words))/math.Max(mean[f], 1)
		weight := float32(fieldWeights[f] / dilution)
		times := make(map[string]int, len(words))
		for _, word := range words {
			key := stem(word)
			if times[key]++; times[key] <= maxRepeats {
				x.words.add(key, doc, weight)
			}
		}
	}
}

// addGrams notes the letter sequences of a tool's name, title and description.
func (x *index) addGrams(doc int32, text *fields) {
	for _, f := range []field{fieldName, fieldTitle, fieldDescription} {
		for _, word := range text[f] {
			eachGram(word, func(gram string) { x.grams.add(gram, doc, 1) })
		}
	}
}

// add counts one more occurrence. Documents come in rising order.
func (p postings) add(key string, doc int32, weight float32) {
	list := p[key]
	if n := len(list); n > 0 && list[n-1].doc == doc {
		list[n-1].weight += weight
		return
	}
	p[key] = append(list, posting{doc, weight})
}

// finishWords turns counts into BM25F scores.
func (x *index) finishWords() {
	for _, list := range x.words {
		n := float64(len(list))
		rarity := math.Log(1 + (float64(x.size)-n+0.5)/(n+0.5))
		for i := range list {
			tf := float64(list[i].weight)
			list[i].weight = float32(rarity * tf * (saturation + 1) / (saturation + tf))
		}
	}
}

// finishGrams turns counts into vectors of length one. It goes through the keys
// in order: sums of floats depend on it, and equal catalogs must rank equally.
func (x *index) finishGrams() {
	squares := make([]float64, x.size)
	for _, key := range sortedKeys(x.grams) {
		list := x.grams[key]
		rarity := x.gramRarity(len(list))
		for i := range list {
			w := (1 + math.Log(float64(list[i].weight))) * rarity
			list[i].weight = float32(w)
			squares[list[i].doc] += w * w
		}
	}
	for _, list := range x.grams {
		for i := range list {
			if s := squares[list[i].doc]; s > 0 {
				list[i].weight /= float32(math.Sqrt(s))
			}
		}
	}
}

func (x *index) gramRarity(n int) float64 {
	return math.Log(1 + float64(x.size)/float64(n))
}

// hit is one document that a question found.
type hit struct {
	doc   int
	score float32
}

// search returns the documents that share a word or a letter sequence with the
// question, best first; equal ones stay in order of the documents. Only
// documents for which keep says true are returned, at most limit of them.
func (x *index) search(question string, limit int, keep func(doc int) bool) []hit {
	words := contentWords(question, maxQueryWords)
	scores := make([]float32, x.size)
	possible := x.scoreWords(words, scores)
	x.scoreGrams(words, gramShare*max(possible, 1), scores)
	asked := slices.ContainsFunc(words, func(word string) bool { return stem(word) == stem("deprecated") })
	var hits []hit
	for doc, score := range scores {
		if x.faded[doc] && !asked {
			score *= deprecatedShare
		}
		if score > 0 && keep(doc) {
			hits = append(hits, hit{doc, score})
		}
	}
	slices.SortStableFunc(hits, func(a, b hit) int { return cmp.Compare(b.score, a.score) })
	return hits[:min(limit, len(hits))]
}

// scoreWords adds what each different stem is worth and returns the sum of what
// the stems are worth at best.
func (x *index) scoreWords(words []string, scores []float32) (possible float32) {
	seen := make(map[string]bool, len(words))
	for _, word := range words {
		key := stem(word)
		if seen[key] {
			continue
		}
		seen[key] = true
		var best float32
		for _, p := range x.words[key] {
			scores[p.doc] += p.weight
			best = max(best, p.weight)
		}
		possible += best
	}
	return possible
}

// scoreGrams adds the cosine of the letter sequences, times scale.
func (x *index) scoreGrams(words []string, scale float32, scores []float32) {
	counts := map[string]float64{}
	var order []string
	for _, word := range words {
		eachGram(word, func(gram string) {
			if counts[gram] == 0 {
				order = append(order, gram)
			}
			counts[gram]++
		})
	}
	var squares float64
	for i, gram := range order {
		list := x.grams[gram]
		if list == nil {
			counts[gram] = 0
			continue
		}
		w := (1 + math.Log(counts[gram])) * x.gramRarity(len(list))
		counts[order[i]] = w
		squares += w * w
	}
	if squares == 0 {
		return
	}
	for _, gram := range order {
		w := scale * float32(counts[gram]/math.Sqrt(squares))
		for _, p := range x.grams[gram] {
			scores[p.doc] += w * p.weight
		}
	}
}

// eachGram calls do with each letter sequence of a word, its ends marked. Bytes
// stand for letters: sequences are compared, never shown.
func eachGram(word string, do func(gram string)) {
	marked := "^" + word + "$"
	if len(marked) <= gramLength {
		do(marked)
		return
	}
	for i := 0; i+gramLength <= len(marked); i++ {
		do(marked[i : i+gramLength])
	}
}

func sortedKeys(p postings) []string {
	keys := make([]string, 0, len(p))
	for key := range p {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, strings.Compare)
	return keys
}
