package catalog

import "github.com/kljensen/snowball/english"

// stem reduces an English word to a form that its relatives share ("searches",
// "searching", "searched": "search"), by the Snowball algorithm for English
// (Porter 2). Words with other letters than a to z come back as they are.
func stem(word string) string {
	for i := 0; i < len(word); i++ {
		if word[i] < 'a' || word[i] > 'z' {
			return word
		}
	}
	return english.Stem(word, true)
}
