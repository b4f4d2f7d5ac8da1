package codegen

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/airlock-mcp/airlock/internal/visible"
)

// Limits of text that is repeated in a generated file, in bytes as printed.
const (
	maxDescription = 4 << 10 // of a tool; the corpus has 3,623
	maxSummary     = 110     // of a tool's line in an index
)

// paragraphs normalises text of several lines for a docstring or comment: no carriage
// returns or tabs, no trailing space, at most one empty line in a row. Text longer than
// limit is cut; whole reports whether it was not.
func paragraphs(text string, limit int) (tidy string, whole bool) {
	var b strings.Builder
	b.Grow(min(len(text), limit))
	newlines, spaces, printed := 0, 0, 0
	for i := 0; i < len(text); {
		r, size := nextRune(text[i:])
		switch r {
		case '\r':
		case '\n', '\u2028', '\u2029', '\u0085', '\v', '\f':
			newlines, spaces = newlines+1, 0
		case ' ', '\u00a0':
			spaces++
		case '\t':
			spaces += 4
		default:
			width := printedSize(r, size)
			newlines, spaces = min(newlines, 2), min(spaces, maxIndent)
			if room := limit - printed - newlines - spaces; room > 0 {
				if n := asciiWord(text[i:min(len(text), i+room)]); n > 0 {
					size, width = n, n
				}
			}
			if printed += newlines + spaces + width; printed > limit {
				return b.String(), false
			}
			if b.Len() > 0 {
				b.WriteString("\n\n"[:newlines])
				b.WriteString(indentation[:spaces])
			}
			newlines, spaces = 0, 0
			b.WriteString(text[i : i+size])
		}
		i += size
	}
	return b.String(), true
}

// Spaces in a row that paragraphs keeps, as lists and programs need them.
const (
	indentation = "                                        "
	maxIndent   = len(indentation)
)

// oneLine tidies text into one line: every run of white space or separators
// becomes one space. Text longer than limit is cut at a word and ends in "…".
func oneLine(text string, limit int) string {
	var b strings.Builder
	printed := 0
	for text = trimSpace(text); text != "" && limit > 0; text = trimSpace(text) {
		size, width := wordSize(text)
		gap := min(printed, 1)
		last := trimSpace(text[size:]) == ""
		if room := limit - printed - gap; width > room || width > room-len("…") && !last {
			if printed < limit/2 {
				b.WriteString(" "[:gap])
				b.WriteString(cut(text[:size], room-len("…")))
			}
			return strings.TrimRight(b.String(), " ,;:.") + "…"
		}
		b.WriteString(" "[:gap])
		b.WriteString(text[:size])
		printed += gap + width
		text = text[size:]
	}
	return b.String()
}

// trimSpace drops white space and separators at the start of text.
func trimSpace(text string) string {
	for text != "" {
		r, size := nextRune(text)
		if !unicode.IsSpace(r) && r != '\u2028' && r != '\u2029' {
			break
		}
		text = text[size:]
	}
	return text
}

// wordSize returns how many bytes the word at the start of text has, and how
// many it takes in a generated file.
func wordSize(text string) (size, width int) {
	size = asciiWord(text)
	for width = size; size < len(text); {
		r, n := nextRune(text[size:])
		if unicode.IsSpace(r) || r == '\u2028' || r == '\u2029' {
			break
		}
		size, width = size+n, width+printedSize(r, n)
	}
	return size, width
}

// asciiWord returns how many bytes at the start of text are visible ASCII
// without spaces.
func asciiWord(text string) int {
	for i := 0; i < len(text); i++ {
		if text[i] <= ' ' || text[i] >= 0x7F {
			return i
		}
	}
	return len(text)
}

// cut returns as many whole characters as print in so many bytes.
func cut(text string, room int) string {
	for i := 0; i < len(text); {
		r, size := nextRune(text[i:])
		if room -= printedSize(r, size); room < 0 {
			return text[:i]
		}
		i += size
	}
	return text
}

// printedSize is how many bytes a character takes in a generated file.
func printedSize(r rune, size int) int {
	switch {
	case visible.Is(r):
		return size
	case r < 0x10000:
		return len(`\u0000`)
	default:
		return len(`\U00000000`)
	}
}

// summary returns the line for a tool in an index: the first sentence of its description,
// or its title.
func summary(title, description string) string {
	first := oneLine(firstParagraph(description), 4*maxSummary)
	if at := strings.Index(first, ". "); at > 0 {
		first = first[:at+1]
	}
	if first == "" {
		first = title
	}
	return oneLine(first, maxSummary)
}

// firstParagraph returns text up to its first empty line.
func firstParagraph(text string) string {
	text = strings.TrimLeftFunc(text, unicode.IsSpace)
	if at := strings.Index(text, "\n\n"); at >= 0 {
		text = text[:at]
	}
	return text
}

// printable replaces invisible characters by escapes, for files without an escape syntax,
// such as Markdown.
func printable(text string) string {
	clean := true
	for i := 0; i < len(text) && clean; {
		r, size := nextRune(text[i:])
		clean = visible.Is(r) && r != utf8.RuneError
		i += size
	}
	if clean {
		return text
	}
	var b []byte
	for i := 0; i < len(text); {
		r, size := nextRune(text[i:])
		if visible.Is(r) {
			b = utf8.AppendRune(b, r)
		} else {
			b = appendHidden(b, r, nodeAstral)
		}
		i += size
	}
	return string(b)
}
