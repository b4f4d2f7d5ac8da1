package catalog

// Limits on a question, so that a hostile one costs little.
const (
	maxQueryBytes = 8 << 10
	maxQueryWords = 200
)

// What another word than the asked one is worth, against the word itself: for
// the order of the hits, and as a sign that a tool fits at all.
const (
	sameWord      = 0.55 // means the same
	sameProof     = 0.8
	relatedWord   = 0.35 // is related
	relatedProof  = 0.3
	phraseWord    = 0.6 // a phrase, in one word
	phraseProof   = 1
	misspeltWord  = 0.7
	misspeltProof = 0.8
	// asideProof is what is left of a sign that stands in parameters only.
	asideProof = 0.6
	// weakMass is what is left of the weight of a word that fits any tool.
	weakMass = 0.4
)

// weakWords fit any tool: alone they prove nothing.
var weakWords = wordSet(`
	get find show make list set new data information info thing things view see give check create run start work add provide option
	options recommend best good way something anything today now current available long short small big two three one first last time
	day call tool request return
`)

// term is one thing that a question asks for, and what it may be called.
type term struct {
	alternatives []alternative
	mass         float32 // how much a question needs it
}

// alternative is one stem, with what it is worth and what it proves.
type alternative struct {
	stem         string
	worth, proof float32
}

// asked cuts a question into terms. Phrases come before their words, and a word
// counts once.
func (x *index) asked(question string) []term {
	words := splitWords(question[:min(len(question), maxQueryBytes)])
	words = words[:min(len(words), maxQueryWords)]
	t := &termList{index: x, meanings: synonyms(), seen: map[string]bool{}}
	for i := 0; i < len(words); {
		if n := t.addPhrase(words[i:]); n > 0 {
			i += n
			continue
		}
		if !stopWords[words[i]] {
			t.addWord(words[i])
		}
		i++
	}
	if len(t.terms) == 0 { // nothing but stop words
		for _, word := range words {
			t.addWord(word)
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

// addPhrase adds the phrase that words begin with, and returns how many words it
// has; 0 when there is none.
func (t *termList) addPhrase(words []string) int {
	p, ok := t.meanings.phraseAt(words)
	if !ok {
		return 0
	}
	n := len(p.words) + 1
	if len(p.same) == 0 && len(p.all) == 0 { // its words say something too
		for _, word := range words[:n] {
			if !stopWords[word] {
				t.addWord(word)
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
	if len(p.same)+len(p.related) > 0 {
		t.finish(one, most, 1)
	}
	t.addAll(p.all, phraseWord, phraseProof, weakMass)
	return n
}

// addWord adds a word with its synonyms, or what it probably means where no tool
// has it.
func (t *termList) addWord(word string) {
	key := stem(word)
	if t.seen[key] {
		return
	}
	t.seen[key] = true
	one := term{}
	n := t.alternative(&one, key, 1, 1)
	meaning := t.meanings.words[key]
	for _, stem := range meaning.same {
		t.alternative(&one, stem, sameWord, sameProof)
	}
	for _, stem := range meaning.related {
		t.alternative(&one, stem, relatedWord, relatedProof)
	}
	if len(one.alternatives) == 0 {
		if parts := t.index.spelling.parts(word); parts != nil {
			t.addAll([][]string{parts}, misspeltWord, misspeltProof, 1)
			return
		}
		if near := t.index.spelling.near(word); near != "" {
			t.alternative(&one, near, misspeltWord, misspeltProof)
		}
	}
	share := 1.0
	if weakWords[word] {
		share = weakMass
	}
	t.finish(one, n, share)
	t.addAll(meaning.all, sameWord, sameProof, weakMass)
}

// addAll adds the words of a meaning that takes several.
func (t *termList) addAll(all [][]string, worth, proof float32, share float64) {
	for _, stems := range all {
		for _, stem := range stems {
			one := term{}
			n := t.alternative(&one, stem, worth, proof)
			t.finish(one, max(n, 1), share)
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
func (t *termList) finish(one term, n int, share float64) {
	one.mass = float32(t.index.rarity(n) * share)
	t.terms = append(t.terms, one)
}
