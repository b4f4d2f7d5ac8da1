package kernel

import (
	"math"
	"strings"
	"unicode"

	"github.com/airlock-mcp/airlock/internal/lazyregexp"
)

// stance is the verdict in an answer to a claim.
type stance string

// The stances.
const (
	stanceTrue      stance = "true"
	stanceFalse     stance = "false"
	stanceUncertain stance = "uncertain"
	stanceNone      stance = "none" // the answer states no verdict
)

var (
	verdictLine = lazyregexp.New(`(?im)^[\s*_#>"'` + "`" + `-]*verdict[\s*_"'` + "`" + `]*[:=-][\s*_"'` + "`" +
		`]*(true|false|uncertain)\b`)
	firstWord = lazyregexp.New(`(?i)^[\s*_#>"'` + "`" +
		`-]*(true|yes|correct|false|no|incorrect|uncertain|unclear|unknown)\b`)
)

// stanceOf returns the stance of an answer: its only verdict, or its first word. Contradictory
// verdicts do not count.
func stanceOf(text string) stance {
	word := ""
	for _, m := range verdictLine.FindAllStringSubmatch(text, -1) {
		if found := strings.ToLower(m[1]); word == "" {
			word = found
		} else if word != found {
			return stanceNone
		}
	}
	if m := firstWord.FindStringSubmatch(text); word == "" && m != nil {
		word = strings.ToLower(m[1])
	}
	switch word {
	case "true", "yes", "correct":
		return stanceTrue
	case "false", "no", "incorrect":
		return stanceFalse
	case "uncertain", "unclear", "unknown":
		return stanceUncertain
	}
	return stanceNone
}

// Weights of the drift between two answers.
const (
	wordingWeight   = 0.1 // of answers with the same stance
	uncertainWeight = 0.5 // between a definite and an uncertain answer
)

// drift returns the distance between two answers, from 0 to 1. Answers with the same stance differ
// by a tenth of the distance of their wording at most, opposite ones by 1, and an uncertain and a
// definite one by a half. If an answer has no stance, the drift is the distance of the wording.
func drift(a, b string) float64 {
	x, y := stanceOf(a), stanceOf(b)
	switch {
	case x == stanceNone || y == stanceNone:
		return distance(a, b)
	case x == y:
		return wordingWeight * distance(a, b)
	case x == stanceUncertain || y == stanceUncertain:
		return uncertainWeight
	}
	return 1
}

// distance returns 1 minus the cosine of the angle between the word counts of two texts: 0 for the
// same words in any order, 1 if they share no word.
func distance(a, b string) float64 {
	x, y := words(a), words(b)
	var dot, xx, yy float64
	for word, n := range x {
		dot += n * y[word]
		xx += n * n
	}
	for _, n := range y {
		yy += n * n
	}
	if xx == 0 || yy == 0 {
		if xx == yy {
			return 0
		}
		return 1
	}
	return min(max(1-dot/math.Sqrt(xx*yy), 0), 1)
}

// words counts the words and numbers of a text, in lower case.
func words(text string) map[string]float64 {
	counts := map[string]float64{}
	for word := range strings.FieldsFuncSeq(strings.ToLower(text), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r)
	}) {
		counts[word]++
	}
	return counts
}

// drifts returns the largest and the mean drift over all pairs of two or more answers.
func drifts(texts []string) (largest, mean float64) {
	sum, pairs := 0.0, 0
	for i := range texts {
		for _, other := range texts[i+1:] {
			d := drift(texts[i], other)
			largest, sum, pairs = max(largest, d), sum+d, pairs+1
		}
	}
	return largest, sum / float64(pairs)
}

// thousandths rounds to three decimal places.
func thousandths(x float64) float64 { return math.Round(x*1000) / 1000 }
