package catalog

import "strings"

// stem reduces an English word to a form that its relatives share ("searches",
// "searching", "searched": "search"), after M. F. Porter, "An algorithm for
// suffix stripping", Program 14 (1980). Words with other letters than a to z,
// and words of one or two letters, come back as they are.
func stem(word string) string {
	if len(word) < 3 {
		return word
	}
	for i := 0; i < len(word); i++ {
		if word[i] < 'a' || word[i] > 'z' {
			return word
		}
	}
	word = stemPlural(word)
	word = stemPast(word)
	if strings.HasSuffix(word, "y") && hasVowel(word[:len(word)-1]) {
		word = word[:len(word)-1] + "i"
	}
	word = stemSuffix(word, doubleSuffixes, 1)
	word = stemSuffix(word, derivedSuffixes, 1)
	word = stemLast(word)
	return stemFinalE(word)
}

// suffix is one ending and what takes its place.
type suffix struct{ old, new string }

// doubleSuffixes are step 2 of the paper, derivedSuffixes step 3, lastSuffixes
// step 4. Within a list the longest ending that fits is the one that counts.
var (
	doubleSuffixes = []suffix{
		{"ational", "ate"}, {"ization", "ize"}, {"fulness", "ful"}, {"ousness", "ous"}, {"iveness", "ive"},
		{"tional", "tion"}, {"biliti", "ble"}, {"entli", "ent"}, {"ousli", "ous"}, {"ation", "ate"},
		{"alism", "al"}, {"aliti", "al"}, {"iviti", "ive"}, {"enci", "ence"}, {"anci", "ance"}, {"izer", "ize"},
		{"abli", "able"}, {"alli", "al"}, {"ator", "ate"}, {"logi", "log"}, {"eli", "e"},
	}
	derivedSuffixes = []suffix{
		{"icate", "ic"}, {"ative", ""}, {"alize", "al"}, {"iciti", "ic"}, {"ical", "ic"}, {"ness", ""}, {"ful", ""},
	}
	lastSuffixes = []suffix{
		{"ement", ""}, {"ance", ""}, {"ence", ""}, {"able", ""}, {"ible", ""}, {"ment", ""}, {"ant", ""},
		{"ent", ""}, {"ism", ""}, {"ate", ""}, {"iti", ""}, {"ous", ""}, {"ive", ""}, {"ize", ""}, {"ion", ""},
		{"al", ""}, {"er", ""}, {"ic", ""}, {"ou", ""},
	}
)

func stemPlural(word string) string {
	switch {
	case strings.HasSuffix(word, "sses"), strings.HasSuffix(word, "ies"):
		return word[:len(word)-2]
	case strings.HasSuffix(word, "s") && !strings.HasSuffix(word, "ss"):
		return word[:len(word)-1]
	}
	return word
}

func stemPast(word string) string {
	if strings.HasSuffix(word, "eed") {
		if sequences(word[:len(word)-3]) > 0 {
			return word[:len(word)-1]
		}
		return word
	}
	var base string
	switch {
	case strings.HasSuffix(word, "ed"):
		base = word[:len(word)-2]
	case strings.HasSuffix(word, "ing"):
		base = word[:len(word)-3]
	}
	if base == "" || !hasVowel(base) {
		return word
	}
	last := base[len(base)-1]
	switch {
	case strings.HasSuffix(base, "at"), strings.HasSuffix(base, "bl"), strings.HasSuffix(base, "iz"):
		return base + "e"
	case len(base) > 1 && last == base[len(base)-2] && isConsonant(base, len(base)-1) && !strings.ContainsRune("lsz", rune(last)):
		return base[:len(base)-1]
	case sequences(base) == 1 && endsShort(base):
		return base + "e"
	}
	return base
}

// stemSuffix replaces the ending that fits if what stays before it measures at
// least least.
func stemSuffix(word string, suffixes []suffix, least int) string {
	for _, s := range suffixes {
		if !strings.HasSuffix(word, s.old) {
			continue
		}
		if base := word[:len(word)-len(s.old)]; sequences(base) >= least {
			return base + s.new
		}
		return word
	}
	return word
}

func stemLast(word string) string {
	if strings.HasSuffix(word, "ion") && !strings.HasSuffix(word, "sion") && !strings.HasSuffix(word, "tion") {
		return word
	}
	return stemSuffix(word, lastSuffixes, 2)
}

func stemFinalE(word string) string {
	if strings.HasSuffix(word, "e") {
		base := word[:len(word)-1]
		if m := sequences(base); m > 1 || m == 1 && !endsShort(base) {
			word = base
		}
	}
	if strings.HasSuffix(word, "ll") && sequences(word) > 1 {
		word = word[:len(word)-1]
	}
	return word
}

// sequences counts the paper's m: how often a run of vowels is followed by a run
// of consonants.
func sequences(word string) int {
	m, vowel := 0, false
	for i := range len(word) {
		if !isConsonant(word, i) {
			vowel = true
		} else if vowel {
			m, vowel = m+1, false
		}
	}
	return m
}

func hasVowel(word string) bool {
	for i := range len(word) {
		if !isConsonant(word, i) {
			return true
		}
	}
	return false
}

// isConsonant follows the paper: y is a vowel after a consonant.
func isConsonant(word string, i int) bool {
	switch word[i] {
	case 'a', 'e', 'i', 'o', 'u':
		return false
	case 'y':
		return i == 0 || !isConsonant(word, i-1)
	}
	return true
}

// endsShort reports the paper's *o: consonant, vowel, consonant at the end, the
// last one not w, x or y.
func endsShort(word string) bool {
	n := len(word)
	return n >= 3 && isConsonant(word, n-1) && !isConsonant(word, n-2) && isConsonant(word, n-3) &&
		!strings.ContainsRune("wxy", rune(word[n-1]))
}
