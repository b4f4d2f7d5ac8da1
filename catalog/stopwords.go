package catalog

import "strings"

// stopWords carry no meaning for search: English function words, and the
// words with which people ask for things ("can you please help me find").
// What a tool does (get, list, find, show) is not among them.
var stopWords = wordSet(`
	a an the this that these those i me my mine myself we us our ours you your yours he him his she her hers it its
	they them their theirs am is are was were be been being have has had having do does did doing done can could may
	might must shall should will would ought and or but nor so if then else than as of at by for with without about
	against between into through during before after above below to from up down in out on off over under again
	further once what which who whom whose when where why how there here all any both each few more most other others
	some such no not only own same too very just also please help helps want wants wanted need needs needed like tell
	give given let know use using used make making sure able looking look hello hi hey thanks thank
	dont isnt arent doesnt didnt wont couldnt wouldnt im ive ill id youre thats whats lets cant
`)

func wordSet(text string) map[string]bool {
	set := map[string]bool{}
	for word := range strings.FieldsSeq(text) {
		set[word] = true
	}
	return set
}

// contentWords returns the words of text that say something, at most limit of
// them. A text of nothing but stop words is returned whole.
func contentWords(text string, limit int) []string {
	all := splitWords(text)
	if len(all) > limit {
		all = all[:limit]
	}
	words := make([]string, 0, len(all))
	for _, word := range all {
		if !stopWords[word] {
			words = append(words, word)
		}
	}
	if len(words) == 0 {
		return all
	}
	return words
}
