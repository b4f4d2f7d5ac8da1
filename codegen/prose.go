package codegen

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits of text that is repeated in a generated file, in bytes as printed.
const (
	maxDescription = 4 << 10 // of a tool; the corpus has 3,623
	maxSummary     = 110     // of a tool's line in an index
)

// paragraphs tidies text of several lines for a docstring or comment: no
// carriage returns or tabs, nothing trailing, at most one empty line in a row.
// Text longer than limit is cut; whole says whether it was not.
func paragraphs(text string, limit int) (tidy string, whole bool) {
	var b strings.Builder
	newlines, spaces := 0, 0
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
			gap := min(newlines, 2) + min(spaces, 40)
			if b.Len()+gap+printedSize(r, size) > limit {
				return b.String(), false
			}
			if b.Len() > 0 {
				b.WriteString("\n\n"[:min(newlines, 2)])
				b.WriteString(strings.Repeat(" ", min(spaces, 40)))
			}
			newlines, spaces = 0, 0
			limit -= printedSize(r, size) - size
			b.WriteString(text[i : i+size])
		}
		i += size
	}
	return b.String(), true
}

// oneLine tidies text into one line: every run of white space or separators
// becomes one space. Text longer than limit is cut at a word and ends in "…".
func oneLine(text string, limit int) string {
	if limit <= 0 {
		return ""
	}
	var b strings.Builder
	space := false
	for i := 0; i < len(text); {
		r, size := nextRune(text[i:])
		if unicode.IsSpace(r) || r == '\u2028' || r == '\u2029' {
			space = b.Len() > 0
			i += size
			continue
		}
		if b.Len()+1+printedSize(r, size) > limit-len("…") && !fits(text[i:], limit-b.Len()-1) {
			return cutAtWord(b.String()) + "…"
		}
		if space {
			b.WriteByte(' ')
			space = false
		}
		limit -= printedSize(r, size) - size
		b.WriteString(text[i : i+size])
		i += size
	}
	return b.String()
}

// fits reports whether what is left prints in so many bytes.
func fits(text string, room int) bool {
	for i := 0; i < len(text); {
		r, size := nextRune(text[i:])
		room -= printedSize(r, size)
		if room < 0 {
			return false
		}
		i += size
	}
	return true
}

// printedSize is how many bytes a character takes in a generated file.
func printedSize(r rune, size int) int {
	switch {
	case visible(r):
		return size
	case r < 0x10000:
		return len(`\u0000`)
	default:
		return len(`\U00000000`)
	}
}

// cutAtWord drops a broken last word, unless that would drop half the text.
func cutAtWord(text string) string {
	if at := strings.LastIndexByte(text, ' '); at > len(text)/2 {
		text = text[:at]
	}
	return strings.TrimRight(text, " ,;:.")
}

// summary returns the one line that stands for a tool in an index: the first
// sentence of its description, else its title.
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

// printable rewrites text for a place without escapes of its own, such as a
// Markdown file: invisible characters become their escapes.
func printable(text string) string {
	clean := true
	for i := 0; i < len(text) && clean; {
		r, size := nextRune(text[i:])
		clean = visible(r) && r != utf8.RuneError
		i += size
	}
	if clean {
		return text
	}
	var b []byte
	for i := 0; i < len(text); {
		r, size := nextRune(text[i:])
		if visible(r) {
			b = append(b, string(r)...)
		} else {
			b = appendHidden(b, r, nodeAstral)
		}
		i += size
	}
	return string(b)
}
