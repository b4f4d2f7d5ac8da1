package hosts

import (
	"slices"
	"strings"
)

// block is a range of lines that belongs to one server.
type block struct {
	name       string
	start, end int // lines, from 0; end is the first line after it
}

// blockLines splits text into lines, including their newlines.
func blockLines(data []byte) []string {
	if len(data) == 0 {
		return nil
	}
	return strings.SplitAfter(strings.TrimSuffix(string(data), "\n")+"\n",
		"\n")[:strings.Count(strings.TrimSuffix(string(data), "\n"), "\n")+1]
}

// ownLines extends a block to the comment directly above it, and removes comments and empty lines
// at its end, which belong to what follows.
func ownLines(lines []string, b block) block {
	for b.start > 0 && strings.HasPrefix(strings.TrimSpace(lines[b.start-1]), "#") {
		b.start--
	}
	return trimEnd(lines, b)
}

// trimEnd removes the comments and empty lines at the end of a block.
func trimEnd(lines []string, b block) block {
	for b.end > b.start+1 {
		line := strings.TrimSpace(lines[b.end-1])
		if line != "" && !strings.HasPrefix(line, "#") {
			break
		}
		b.end--
	}
	return b
}

// withoutBlocks returns the lines without the blocks of the given names, and the index of the line
// the offset of the first of these blocks, or -1.
func withoutBlocks(lines []string, blocks []block, names []string) (kept []string, first int) {
	first = -1
	for i, line := range lines {
		at := slices.IndexFunc(blocks, func(b block) bool {
			return b.start <= i && i < b.end &&
				slices.Contains(names, b.name)
		})
		if at < 0 {
			kept = append(kept, line)
			continue
		}
		if first < 0 {
			first = len(kept)
		}
		for i == blocks[at].end-1 && len(kept) > 0 && strings.TrimSpace(kept[len(kept)-1]) == "" && len(kept) > first {
			kept = kept[:len(kept)-1] // so that repeated edits do not add empty lines
		}
	}
	return kept, first
}

// blockTexts returns the text of each named block; the parts of one name are joined.
func blockTexts(lines []string, blocks []block, names []string) map[string]string {
	out := map[string]string{}
	for _, b := range blocks {
		if slices.Contains(names, b.name) {
			out[b.name] += strings.Join(lines[b.start:b.end], "")
		}
	}
	return out
}
