package catalog

import "math"

// Limits on a question, so that a hostile one costs little.
const (
	maxQueryBytes = 8 << 10
	maxQueryWords = 200
)

// What another word than the asked one is worth, against the word itself: for
// the order of the hits, and as a sign that a tool fits at all.
const (
	sameWord           = 0.55 // means the same
	sameProof          = 0.8
	relatedWord        = 0.35 // is related
	relatedProof       = 0.35
	relatedActionProof = 0.3 // likewise, of a verb
	phraseWord         = 0.6 // a phrase, in one word
	phraseProof        = 1
	misspeltWord       = 0.7
	misspeltProof      = 0.8
	// massFloor is the least rarity that counts, against that of a word which one
	// tool has: a word that all tools of a small catalog have is what they are about.
	massFloor = 0.25
	// weakMass is what is left of the weight of a word that fits any tool.
	weakMass = 0.3
	// unknownMass is the same for a word that occurs neither in a tool nor in
	// synonyms.txt. Most are names and values, which rarely identify a tool.
	unknownMass = 0.25
	// unknownCredit is what a tool gets that has such a word.
	unknownCredit = 0.6
	// valueMass is the same for names and values.
	valueMass = 0.2
)

// weakWords fit any tool: alone they prove nothing.
var weakWords = wordSet(`
	able access across actually additional additionally all already also amount anything appropriate around assist assistance available
	based believe best better check considering comprehensive currently current daily detail details detailed determine different effectively
	enhance ensure every everything exist explore features find finding first following full future get getting give go going good got great
	happen happened helpful high highly imagine improve include included including info information insight insights interested kindly know
	last lastly latest level list located long major make many matter multiple name named next now number offer offers one option options
	overall particular per perform personal popular possible potential prefer preferably preferences professional provide providing put quality
	real really recent recently recommend recommendation recommendations regarding relevant reliable request results return right run second see seeking
	set several short show small some something specific specifically start such suggest suggestion suggestions suitable support take
	task thing things three time today tool top total trying two type understand unique user users various view want way well while within
	work working add big call create day data new generate fetch retrieve
`)

// actionWords are verbs without an object. If a question also names an object, a tool that
// matches only its action words rarely fits.
var actionWords = wordSet(`
	add append ask build calculate cancel change check clear close compare compute connect convert copy count create delete describe destroy
	download edit erase execute explain explore extract fetch filter find follow generate get give grab insert invite launch list load look make
	manage move open order organize pack plan play post print publish pull push put query read receive remember remove rename reply report
	request reset restart retrieve run save schedule search see send set share show solve sort start stop store submit summarize tell track
	transfer turn update upload use verify view watch work write
`)

// term is one thing that a question asks for, and what it may be called.
type term struct {
	alternatives []alternative
	mass         float32 // how much a question needs it
	credit       float32 // how much a tool that has it meets of the question
	thing        bool    // not just something to do, nor a word that fits any tool
}

// alternative is one stem, with what it is worth and what it proves.
type alternative struct {
	stem         string
	worth, proof float32
}

// asked cuts a question of at most maxQueryBytes into terms. Phrases come before their words, and a word
// counts once.
func (x *index) asked(question string) []term {
	words := splitQuestion(question)
	words = words[:min(len(words), maxQueryWords)]
	texts := make([]string, len(words))
	for i, word := range words {
		texts[i] = word.text
	}
	t := &termList{index: x, meanings: synonyms(), seen: map[string]bool{}}
	for i := 0; i < len(words); {
		if n := t.addPhrase(texts[i:]); n > 0 {
			i += n
			continue
		}
		if !stopWords()[texts[i]] {
			t.addWord(texts[i], words[i].value)
		}
		i++
	}
	if len(t.terms) == 0 { // nothing but stop words
		for _, word := range texts {
			t.addWord(word, false)
		}
	}
	return t.terms
}

// termList gathers the terms of one question.
type termList struct {
	index    *index
	meanings *thesaurus
	seen     map[string]bool
	terms    []term
}

// addPhrase adds the phrase at the start of words and returns its number of words, or 0 if
// no phrase starts there.
func (t *termList) addPhrase(words []string) int {
	p, ok := t.meanings.phraseAt(words)
	if !ok {
		return 0
	}
	n := len(p.words) + 1
	if len(p.same) == 0 && len(p.all) == 0 { // the single words count as well
		for _, word := range words[:n] {
			if !stopWords()[word] {
				t.addWord(word, false)
			}
		}
	}
	one := term{}
	most := 0
	for _, stem := range p.same {
		most = max(most, t.alternative(&one, stem, phraseWord, phraseProof))
	}
	for _, stem := range p.related {
		t.alternative(&one, stem, phraseWord, relatedProof)
	}
	one.thing = true
	if len(p.same)+len(p.related) > 0 {
		t.finish(one, most, 1, 1)
	}
	t.addAll(p.all, phraseWord, phraseProof, weakMass)
	return n
}

// addWord adds a word with its synonyms. If no tool contains the word, it adds the words
// that were probably meant.
func (t *termList) addWord(word string, value bool) {
	key := stem(word)
	if t.seen[key] {
		return
	}
	t.seen[key] = true
	one := term{}
	n := t.alternative(&one, key, 1, 1)
	meaning := t.meanings.words[key]
	same := 0
	for _, stem := range meaning.same {
		same = max(same, t.alternative(&one, stem, sameWord, sameProof))
	}
	if n == 0 { // a word that is in no tool is as frequent as its synonym
		n = same
	}
	proof := float32(relatedProof)
	if actionWords()[word] || weakWords()[word] {
		proof = relatedActionProof
	}
	for _, stem := range meaning.related {
		t.alternative(&one, stem, relatedWord, proof)
	}
	known := t.meanings.known[key]
	if len(one.alternatives) == 0 && !known {
		if parts := t.index.spelling.parts(word); parts != nil {
			t.addAll([][]string{parts}, misspeltWord, misspeltProof, 1)
			return
		}
		if near := t.index.spelling.near(word); near != "" {
			t.alternative(&one, near, misspeltWord, misspeltProof)
		}
	}
	t.finishWord(one, n, word, value, known || t.index.names[key] != nil)
	t.addAll(meaning.all, sameWord, sameProof, weakMass)
}

// finishWord adds the term of one word. A known word is one of those that tools
// are asked for with.
func (t *termList) finishWord(one term, n int, word string, value, known bool) {
	one.thing = !weakWords()[word] && !actionWords()[word]
	switch {
	case weakWords()[word]:
		t.finish(one, n, weakMass, weakMass)
	case value && (!known || len(one.alternatives) == 0):
		one.thing = false
		t.finish(one, n, valueMass, valueMass)
	case !known:
		t.finish(one, n, unknownMass, unknownCredit)
	default:
		t.finish(one, n, 1, 1)
	}
}

// addAll adds the words of a meaning that takes several.
func (t *termList) addAll(all [][]string, worth, proof float32, share float64) {
	for _, stems := range all {
		for _, stem := range stems {
			one := term{}
			n := t.alternative(&one, stem, worth, proof)
			t.finish(one, max(n, 1), share, share)
		}
	}
}

// alternative adds a stem that some tool has, and returns how many have it.
func (t *termList) alternative(one *term, stem string, worth, proof float32) int {
	n := len(t.index.words[stem])
	if n > 0 {
		one.alternatives = append(one.alternatives, alternative{stem, worth, proof})
	}
	return n
}

// finish adds a term that n tools have.
func (t *termList) finish(one term, n int, mass, credit float64) {
	one.mass, one.credit = float32(t.index.massOf(n)*mass), float32(t.index.massOf(n)*credit)
	t.terms = append(t.terms, one)
}

// massOf is what a question needs a term that n tools have: half-way, in
// proportion, between all alike and their rarity.
func (x *index) massOf(n int) float64 {
	return math.Sqrt(max(x.rarity(n), massFloor*x.rarity(1)))
}
