package sqltext

import (
	"strings"
	"sync"

	"github.com/airlock-mcp/airlock/sdk/python"
)

// set is a list of words for lookups.
type set map[string]bool

// vocabulary contains the sections of words.txt, which the SQL engine of sdk/python reads too.
type vocabulary struct {
	reading, changing, starting, pairs, harmless, introducers, parentheses, prefixes, types, functions, objects,
	keywords, commands set
}

var words = sync.OnceValue(func() vocabulary {
	text, err := python.Source.ReadFile("src/qwed_new/engines/sql/words.txt")
	if err != nil {
		panic(err) // the file is embedded
	}
	sections, current := map[string]set{}, set{}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "#"):
		case strings.HasPrefix(line, "["):
			current = set{}
			sections[strings.Trim(line, "[]")] = current
		default:
			for word := range strings.FieldsSeq(line) {
				current[word] = true
			}
		}
	}
	return vocabulary{
		sections["reading"], sections["changing"], sections["starting"], sections["pairs"], sections["harmless"],
		sections["introducers"], sections["parentheses"], sections["prefixes"], sections["types"],
		sections["functions"], sections["objects"], sections["keywords"], sections["commands"],
	}
})
