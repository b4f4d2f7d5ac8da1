package catalog

import (
	"math"
	"slices"
	"strings"
)

// The ranking is BM25F (Robertson, Zaragoza: "The Probabilistic Relevance
// Framework: BM25 and Beyond", 2009, section 3.6) over the stems of a tool's
// fields, with curated synonyms at a discount, plus how much of the tool's name
// was asked for, plus a little for the cosine of letter sequences. The constants
// lie on a wide plateau: half or twice as much moves recall@5 of no retrieval set
// by more than about 0.02.
const (
	saturation    = 1.2  // k1: how soon a repeated word stops counting
	lengthPenalty = 0.25 // b: how much a long field dilutes its words
	gramLength    = 4    // letters in a sequence
)

// field is one part of a tool's definition that is searched.
type field int

const (
	fieldServer field = iota
	fieldName
	fieldTitle
	fieldLead        // the first sentence of the description
	fieldDescription // the rest of it
	fieldParameters
	fieldParameterText
	fieldCount
)

// fieldWeights are the weights of a word by the field that contains it.
var fieldWeights = [fieldCount]float64{
	fieldServer: 0.3, fieldName: 3, fieldTitle: 2, fieldLead: 1, fieldDescription: 0.4, fieldParameters: 1,
	fieldParameterText: 0.9,
}

// fieldProofs state by field how strongly a word indicates that the tool fits at all.
var fieldProofs = [fieldCount]float32{
	fieldServer: 0.5, fieldName: 1, fieldTitle: 1, fieldLead: 0.9, fieldDescription: 0.6, fieldParameters: 0.5,
	fieldParameterText: 0.4,
}

// Limits on the text that is indexed, so that a hostile definition costs little.
const (
	maxFieldWords = 1000
	maxRepeats    = 3 // how often one word counts in one field
)

// index answers searches over tools in fixed order. It never changes once built.
type index struct {
	size      int
	words     postings // by stem
	names     postings // by stem: the tools that have it in their name
	nameRange []float32
	grams     postings // by letter sequence
	faded     []bool   // by document: it is deprecated
	spelling  spellings
}

// postings lists for each key the documents that contain it.
type postings map[string][]posting

// posting is the score of one key in one document, rarity included.
type posting struct {
	doc    int32
	weight float32
	// sure is the highest of fieldProofs among the fields that contain the word.
	sure float32
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
	x := &index{
		size: len(docs), words: postings{}, names: postings{}, grams: postings{},
		nameRange: make([]float32, len(docs)), faded: make([]bool, len(docs)),
	}
	stems := map[string]string{}
	for i := range docs {
		x.addWords(int32(i), &docs[i].fields, &mean, stems)
		x.addGrams(int32(i), &docs[i].fields)
		x.faded[i] = docs[i].deprecated
	}
	x.finishWords()
	x.finishGrams()
	x.spelling = newSpellings(stems)
	return x
}

// addWords counts the stems of a document, weighted by field and normalised by field
// length. stems caches the stem of each word.
func (x *index) addWords(doc int32, text *fields, mean *[fieldCount]float64, stems map[string]string) {
	for f, words := range text {
		dilution := 1 - lengthPenalty + lengthPenalty*float64(len(words))/math.Max(mean[f], 1)
		weight := float32(fieldWeights[f] / dilution)
		sure := fieldProofs[f]
		times := make(map[string]int, len(words))
		for _, word := range words {
			key, known := stems[word]
			if !known {
				key = stem(word)
				stems[word] = key
			}
			if times[key]++; times[key] <= maxRepeats {
				x.words.add(key, doc, weight, sure)
			}
			if field(f) == fieldName && times[key] == 1 {
				x.names.add(key, doc, 1, 1)
			}
		}
	}
}

// addGrams notes the letter sequences of a tool's name, title and description.
func (x *index) addGrams(doc int32, text *fields) {
	for _, f := range []field{fieldName, fieldTitle, fieldLead} {
		for _, word := range text[f] {
			eachGram(word, func(gram string) { x.grams.add(gram, doc, 1, 1) })
		}
	}
}

// add counts one more occurrence. Documents come in rising order.
func (p postings) add(key string, doc int32, weight, sure float32) {
	list := p[key]
	if n := len(list); n > 0 && list[n-1].doc == doc {
		list[n-1].weight += weight
		list[n-1].sure = max(list[n-1].sure, sure)
		return
	}
	p[key] = append(list, posting{doc, weight, sure})
}

// rarity is the weight of a word that n documents contain.
func (x *index) rarity(n int) float64 {
	return math.Log(1 + (float64(x.size)-float64(n)+0.5)/(float64(n)+0.5))
}

// finishWords turns counts into BM25F scores, and sums up what the words of each
// name are worth.
func (x *index) finishWords() {
	for _, list := range x.words {
		rarity := x.rarity(len(list))
		for i := range list {
			tf := float64(list[i].weight)
			list[i].weight = float32(rarity * tf * (saturation + 1) / (saturation + tf))
		}
	}
	for _, key := range sortedKeys(x.names) { // sums of floats depend on the order
		rarity := float32(x.rarity(len(x.words[key])))
		list := x.names[key]
		for i := range list {
			list[i].weight = rarity
			x.nameRange[list[i].doc] += rarity
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

// eachGram calls do with each n-gram of a word, with its ends marked. The n-grams consist
// of bytes, because they are compared and never shown.
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
