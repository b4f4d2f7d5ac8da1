package attachment

import (
	"fmt"
	"path"
	"strings"
	"unicode"

	"github.com/airlock-mcp/airlock/internal/truncate"
)

// maxName is the most bytes of a file's name.
const maxName = 100

// cleanName returns a program's file name without directory and invisible characters, and
// shortened if needed. It returns "" if nothing is left.
func cleanName(wanted string) string {
	wanted = strings.ToValidUTF8(wanted, "")
	wanted = path.Base(strings.ReplaceAll(wanted, `\`, "/"))
	wanted = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsGraphic(r), unicode.In(r, unicode.Cf, unicode.Co):
			return -1
		}
		return r
	}, wanted)
	wanted = strings.Trim(wanted, " ./")
	if len(wanted) <= maxName {
		return wanted
	}
	extension := path.Ext(wanted)
	if len(extension) > 12 {
		extension = ""
	}
	return strings.TrimRight(truncate.Head(wanted, maxName-len(extension)), " .") + extension
}

// nameFor returns the name of a file: the wanted one, or one made from its type.
func nameFor(wanted, mime string, number int) string {
	name := cleanName(wanted)
	if name == "" {
		name = fmt.Sprintf("attachment-%d", number)
	}
	if path.Ext(name) == "" {
		name += extensionOf(mime)
	}
	return name
}

// free returns the name with a number where another file has it.
func free(name string, taken func(name string) bool) string {
	if !taken(name) {
		return name
	}
	extension := path.Ext(name)
	stem := strings.TrimSuffix(name, extension)
	for n := 2; ; n++ {
		if numbered := fmt.Sprintf("%s-%d%s", stem, n, extension); !taken(numbered) {
			return numbered
		}
	}
}
