package embedding

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/internal/store"
)

// Limits of a table, so that a wrong file costs little.
const (
	maxTable      = 1 << 30 // bytes of a file
	maxTableWords = 500_000
	maxTableSize  = 100_000_000 // values: words times dimensions, 400 MB in memory
	maxTableLine  = 1 << 20
	maxWord       = 256 // bytes
)

// Table is a vector for each word, read from a file: nothing leaves the process.
// The vector of a text is the mean of those of its words.
type Table struct {
	dimensions int
	values     []float32 // of all words, one after the other
	rows       map[string]int32
	// byRank reports that the rows are sorted by the frequency of the words, as GloVe's
	// and word2vec's are. The most frequent words then get less weight.
	byRank bool
}

var _ Source = (*Table)(nil)

// OpenTable reads a table: a text file with a word and its values on each line
// (GloVe, and word2vec's form with a line of counts before), or a safetensors file
// with one matrix and tokenizer.json, which names its rows, beside it (model2vec).
func OpenTable(path string) (*Table, error) {
	file, err := store.Open(path)
	if err != nil {
		return nil, fmt.Errorf("reading the table of embeddings: %w", err)
	}
	defer file.Close()
	info, err := file.Stat()
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading the table of embeddings: %w", err)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("reading the table of embeddings: %q is not a regular file", path)
	case info.Size() > maxTable:
		return nil, fmt.Errorf("reading the table of embeddings: %q has %d bytes, more than %d", path, info.Size(),
			maxTable)
	}
	var table *Table
	if strings.HasSuffix(path, ".safetensors") {
		table, err = readSafetensors(file, info.Size(), filepath.Join(filepath.Dir(path), "tokenizer.json"))
	} else {
		table, err = readText(file)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the table of embeddings %q: %w", path, err)
	}
	return table, nil
}

// readText reads words with their values, a line each.
func readText(r io.Reader) (*Table, error) {
	scanner := bufio.NewScanner(r)
	scanner.Buffer(make([]byte, 64<<10), maxTableLine)
	t := &Table{rows: map[string]int32{}, byRank: true}
	for line := 1; scanner.Scan(); line++ {
		fields := strings.Fields(scanner.Text())
		if line == 1 && len(fields) == 2 { // word2vec: how many words, how many values
			continue
		}
		if err := t.addLine(fields); err != nil {
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
	}
	if err := scanner.Err(); err != nil {
		return nil, err
	}
	if len(t.rows) == 0 {
		return nil, errors.New("it has no words")
	}
	return t, nil
}

func (t *Table) addLine(fields []string) error {
	if len(fields) < 2 {
		return errors.New("a word with its values is missing")
	}
	if t.dimensions == 0 {
		t.dimensions = len(fields) - 1
	}
	word := fields[0]
	switch {
	case len(fields)-1 != t.dimensions:
		return fmt.Errorf("it has %d values, and the lines before have %d", len(fields)-1, t.dimensions)
	case t.dimensions > maxDimensions:
		return fmt.Errorf("it has more than %d values", maxDimensions)
	case len(t.rows) >= maxTableWords, len(t.values)+t.dimensions > maxTableSize:
		return fmt.Errorf("the table has more than %d words or %d values", maxTableWords, maxTableSize)
	case len(word) > maxWord || !utf8.ValidString(word):
		return errors.New("the word is too long, or not UTF-8")
	}
	start := len(t.values)
	for _, field := range fields[1:] {
		x, err := strconv.ParseFloat(field, 32)
		if err != nil || math.IsNaN(x) || math.IsInf(x, 0) {
			return fmt.Errorf("%q is not a number", field)
		}
		t.values = append(t.values, float32(x))
	}
	if _, twice := t.rows[word]; twice { // the first one counts
		t.values = t.values[:start]
		return nil
	}
	t.rows[word] = int32(start / t.dimensions)
	return nil
}

// Remote implements Source.
func (t *Table) Remote() bool { return false }

// Words is how many words the table has.
func (t *Table) Words() int { return len(t.rows) }

// Vectors implements Source.
func (t *Table) Vectors(_ context.Context, texts []string) ([][]float32, error) {
	vectors := make([][]float32, len(texts))
	for i, text := range texts {
		vectors[i] = t.vector(text)
	}
	return vectors, nil
}

// vector is the mean of the vectors of a text's words; nil when it has none.
func (t *Table) vector(text string) []float32 {
	sum := make([]float32, t.dimensions)
	found := false
	for _, word := range catalog.ContentWords(text) {
		for _, row := range t.pieces(word) {
			found = true
			weight := float32(1)
			if t.byRank {
				weight = float32(math.Log(2 + float64(row)))
			}
			for i, x := range t.values[int(row)*t.dimensions:][:t.dimensions] {
				sum[i] += weight * x
			}
		}
	}
	if !found {
		return nil
	}
	return sum
}

// wordMarks are the prefixes that mark the start of a word in tokenizer vocabularies.
var wordMarks = []string{"", "▁", "Ġ"}

// pieces returns the rows of a word: its own, or those of the longest pieces that
// it is made of, as WordPiece cuts it.
func (t *Table) pieces(word string) []int32 {
	for _, mark := range wordMarks {
		if row, ok := t.rows[mark+word]; ok {
			return []int32{row}
		}
	}
	var rows []int32
	for begin := 0; begin < len(word); {
		mark := "##"
		if begin == 0 {
			mark = ""
		}
		end := len(word)
		for ; end > begin; end-- {
			if row, ok := t.rows[mark+word[begin:end]]; ok {
				rows = append(rows, row)
				break
			}
		}
		if end == begin {
			return nil
		}
		begin = end
	}
	return slices.Clip(rows)
}
