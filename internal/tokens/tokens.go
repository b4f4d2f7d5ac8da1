// Package tokens counts the tokens of a text with a language model's tokenizer: byte pair
// encoding with the published vocabulary o200k_base. Other models use other tokenizers, so
// the counts are for comparing texts, not for computing a price.
package tokens

import (
	"sync"
	"unicode"
	"unicode/utf8"

	loader "github.com/pkoukk/tiktoken-go-loader"

	"github.com/airlock-mcp/airlock/internal/lazyregexp"
)

// Tokenizer names what counts.
const Tokenizer = "o200k_base"

// maxPiece bounds a piece in bytes, so that a text of one letter costs little.
const maxPiece = 512

// pieces splits a text before pairs are merged, as o200k_base does. White space before
// other characters is split afterwards, because Go's expressions have no look-ahead.
var pieces = lazyregexp.New(
	`[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?` +
		`|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?` +
		`|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+|.`)

// ranks is the vocabulary: how early each token was merged.
var ranks = sync.OnceValues(func() (map[string]int, error) {
	return loader.NewOfflineLoader().LoadTiktokenBpe(Tokenizer + ".tiktoken")
})

// Count returns how many tokens a text has.
func Count(text string) (int, error) {
	merged, err := ranks()
	if err != nil {
		return 0, err
	}
	count := 0
	for len(text) > 0 {
		size := pieceSize(text)
		count += countPiece(text[:size], merged)
		text = text[size:]
	}
	return count, nil
}

// pieceSize is the length of the piece that a text begins with.
func pieceSize(text string) int {
	at := pieces.FindStringIndex(text[:min(len(text), maxPiece)])
	if at == nil || at[0] != 0 || at[1] == 0 {
		return 1 // a byte that is not text
	}
	size := at[1]
	if piece := text[:size]; size < len(text) && size > 1 && isBlank(piece) {
		if next, _ := utf8.DecodeRuneInString(text[size:]); !unicode.IsSpace(next) {
			_, last := utf8.DecodeLastRuneInString(piece)
			if piece[size-1] != '\n' && piece[size-1] != '\r' && size > last {
				return size - last // the last blank belongs to what follows
			}
		}
	}
	return size
}

func isBlank(piece string) bool {
	for _, c := range piece {
		if !unicode.IsSpace(c) {
			return false
		}
	}
	return true
}

// countPiece merges the pair of the lowest rank until none is left.
func countPiece(piece string, merged map[string]int) int {
	if _, whole := merged[piece]; whole {
		return 1
	}
	ends := make([]int, len(piece)) // of the parts
	for i := range ends {
		ends[i] = i + 1
	}
	for len(ends) > 1 {
		best, at := -1, -1
		begin := 0
		for i := 0; i+1 < len(ends); i++ {
			if rank, ok := merged[piece[begin:ends[i+1]]]; ok && (best < 0 || rank < best) {
				best, at = rank, i
			}
			begin = ends[i]
		}
		if at < 0 {
			break
		}
		ends = append(ends[:at], ends[at+1:]...)
	}
	return len(ends)
}
