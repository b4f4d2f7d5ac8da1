package catalog

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestSplitWords(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"snake case", "create_pull_request", "create pull request"},
		{"camel case", "createPullRequest", "create pull request"},
		{"kebab and dots", "math.hypot-fast", "math hypot fast"},
		{"an abbreviation before a word", "HTTPServer", "http server"},
		{"a plural abbreviation", "listURLs of PDFs", "list urls of pdfs"},
		{"letters and digits", "sha256sum v2", "sha 256 sum v 2"},
		{"an apostrophe", "don't the user’s", "dont the users"},
		{"a quote", "the 'query-docs' tool", "the query docs tool"},
		{"diacritics", "Käärijä Łódź", "kaarija lodz"},
		{"combining marks", "Ka\u0308a\u0308", "kaa"},
		{"Chinese in pairs", "搜索文件", "搜索 索文 文件"},
		{"one Chinese character", "a 文 b", "a 文 b"},
		{"Cyrillic", "Поиск файлов", "поиск файлов"},
		{"hidden characters separate", "a\u200bb", "a b"},
		{"a blob is no word", strings.Repeat("x", 65), ""},
		{"nothing", " -_.", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := strings.Join(splitWords(test.text), " "); got != test.want {
				t.Errorf("splitWords(%q): got %q, want %q", test.text, got, test.want)
			}
		})
	}
}

// Pairs of words from the paper and from tool descriptions.
func TestStem(t *testing.T) {
	tests := []struct{ word, want string }{
		{"caresses", "caress"}, {"ponies", "poni"}, {"cats", "cat"}, {"feed", "feed"}, {"agreed", "agre"},
		{"plastered", "plaster"},
		{"bled", "bled"}, {"motoring", "motor"}, {"sing", "sing"}, {"conflated", "conflat"}, {"hopping", "hop"},
		{"falling", "fall"},
		{"filing", "file"}, {"happy", "happi"}, {"sky", "sky"}, {"relational", "relat"}, {"conditional", "condit"},
		{"vietnamization", "vietnam"},
		{"triplicate", "triplic"}, {"electrical", "electr"}, {"goodness", "good"}, {"revival", "reviv"},
		{"adjustment", "adjust"},
		{"adoption", "adopt"}, {"probate", "probat"}, {"rate", "rate"}, {"controll", "control"}, {"roll", "roll"},
		{"searches", "search"}, {"searching", "search"}, {"files", "file"}, {"is", "is"}, {"поиск", "поиск"},
		{"v2", "v2"},
	}
	for _, test := range tests {
		if got := stem(test.word); got != test.want {
			t.Errorf("stem(%q): got %q, want %q", test.word, got, test.want)
		}
	}
}

func TestWordsOfAnyTextAreWords(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		for _, word := range splitWords(rapid.String().Draw(t, "text")) {
			if word == "" || len(word) > maxWordBytes || stem(word) == "" {
				t.Fatalf("got the word %q with stem %q", word, stem(word))
			}
		}
	})
}
