package catalog

import (
	_ "embed"
	"slices"
	"strings"
	"sync"
)

//go:embed synonyms.txt
var synonymsText string

//go:embed topics.txt
var topicsText string

// thesaurus maps words of a question to words that tools may use instead.
type thesaurus struct {
	words   map[string]meaning  // by stem
	known   map[string]bool     // every stem of synonyms.txt and topics.txt
	phrases map[string][]phrase // by first word: the phrases that begin with it, longest first
}

// meaning is what else a word or a phrase may be called: stems, in the order of
// the groups.
type meaning struct {
	same, related []string
	all           [][]string // groups of words that together mean the same
}

// phrase is several words that mean one thing.
type phrase struct {
	words []string // behind the first
	meaning
}

// synonyms is the thesaurus of synonyms.txt and topics.txt, read once.
var synonyms = sync.OnceValue(func() *thesaurus {
	t := readThesaurus(synonymsText)
	t.addTopics(topicsText)
	return t
})

// addTopics reads words that are known without having synonyms.
func (t *thesaurus) addTopics(text string) {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		for word := range strings.FieldsSeq(line) {
			t.known[stem(word)] = true
		}
	}
}

func readThesaurus(text string) *thesaurus {
	t := &thesaurus{words: map[string]meaning{}, known: map[string]bool{}, phrases: map[string][]phrase{}}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		line, same := strings.CutPrefix(line, "=")
		from, to, oneWay := strings.Cut(line, ">")
		if !oneWay {
			to = from
		}
		t.relate(terms(from), terms(to), same, oneWay)
	}
	return t
}

// terms cuts the terms of a line into words.
func terms(list string) [][]string {
	var found [][]string
	for term := range strings.SplitSeq(list, ",") {
		if words := splitWords(term); len(words) > 0 {
			found = append(found, words)
		}
	}
	return found
}

// relate lets each term on the left find the words on the right.
func (t *thesaurus) relate(from, to [][]string, same, oneWay bool) {
	var targets []string
	var all [][]string
	for _, words := range to {
		stems := make([]string, len(words))
		for i, word := range words {
			stems[i] = stem(word)
		}
		switch {
		case len(words) == 1:
			t.known[stems[0]] = true
			targets = append(targets, stems[0])
		case oneWay:
			all = append(all, stems)
		}
	}
	for _, words := range from {
		if len(words) > 1 {
			t.addPhrase(words, targets, same, all)
			continue
		}
		key := stem(words[0])
		t.known[key] = true
		m := t.words[key].with(targets, same, key)
		m.all = append(m.all, all...)
		t.words[key] = m
	}
}

// with adds targets except word itself. A target in the same list is not added to the
// related ones.
func (m meaning) with(targets []string, same bool, word string) meaning {
	for _, target := range targets {
		switch {
		case target == word || slices.Contains(m.same, target):
		case same:
			m.same = append(m.same, target)
		case !slices.Contains(m.related, target):
			m.related = append(m.related, target)
		}
	}
	return m
}

func (t *thesaurus) addPhrase(words, targets []string, same bool, all [][]string) {
	list := t.phrases[words[0]]
	for i := range list {
		if slices.Equal(list[i].words, words[1:]) {
			list[i].meaning = list[i].with(targets, same, "")
			list[i].all = append(list[i].all, all...)
			return
		}
	}
	added := phrase{words[1:], meaning{}.with(targets, same, "")}
	added.all = all
	at := slices.IndexFunc(list, func(p phrase) bool { return len(p.words) < len(added.words) })
	if at < 0 {
		at = len(list)
	}
	t.phrases[words[0]] = slices.Insert(list, at, added)
}

// phraseAt returns the longest phrase that words begin with.
func (t *thesaurus) phraseAt(words []string) (phrase, bool) {
	for _, p := range t.phrases[words[0]] {
		if len(p.words) < len(words) && slices.Equal(p.words, words[1:1+len(p.words)]) {
			return p, true
		}
	}
	return phrase{}, false
}
