package code

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/app/orchestrator"
	"github.com/airlock-mcp/airlock/app/server"
)

// maxOverhead is the maximum number of tokens of an answer besides the result and the output.
const maxOverhead = 40

// countTokens returns the approximate number of tokens of a text, which is on average too high.
// Like o200k_base and cl100k_base it combines up to three digits, a word with the space before it,
// and consecutive punctuation marks with the line break after them. Its words have at most eight
// letters, and its pieces of mixed letters and digits at most three characters. For 2,000 run lines
// it counts 25.2 on average; both encodings count 24.2, and 33 at most.
func countTokens(text string) int {
	count := 0
	runes := []rune(text)
	for i := 0; i < len(runes); {
		start := i
		kind := kindOf(runes[i])
		for i < len(runes) && kindOf(runes[i]) == kind {
			i++
		}
		size, mixed := i-start, start > 0 && unicode.IsDigit(runes[start-1]) || i < len(runes) &&
			unicode.IsDigit(runes[i])
		switch {
		case kind == ' ':
			behindMark := start > 0 && kindOf(runes[start-1]) == '.'
			if (size > 1 || i == len(runes) || runes[start] == '\n') && !behindMark {
				count++
			}
		case kind == '0', kind == 'a' && mixed:
			count += (size + 2) / 3
		case kind == 'a':
			count += (size + 7) / 8
		default:
			count += (size + 1) / 2
		}
	}
	return count
}

func kindOf(r rune) rune {
	switch {
	case unicode.IsSpace(r):
		return ' '
	case unicode.IsDigit(r):
		return '0'
	case unicode.IsLetter(r):
		return 'a'
	}
	return '.'
}

// Besides the result or the error and the output, an answer has at most forty tokens, for every
// kind of result.
func TestAnAnswerAddsLittle(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	failure := func(retryable bool, calls int) orchestrator.Result {
		return orchestrator.Result{
			Error:   &orchestrator.Failure{Type: "KeyError", Message: "'id'", Retryable: retryable},
			Metrics: orchestrator.Metrics{Calls: calls},
		}
	}
	kinds := map[string]orchestrator.Result{
		"a number": ok(`1`), "a text": ok(`"two\nlines"`), "an empty text": ok(`""`), "null": ok(`null`),
		"rows": ok(`{"rows":[1,2,3]}`), "a list": ok(`[]`),
		"calls":                 {OK: true, Data: json.RawMessage(`true`), Metrics: orchestrator.Metrics{Calls: 99}},
		"a failure":             failure(false, 0),
		"a failure after calls": failure(false, 99), "a failure to try again": failure(true, 0),
		"both": failure(true, 9),
	}
	logs := map[string]orchestrator.Printed{"": {}, ", stdout": {Stdout: "a log\n"}, ", stderr": {Stderr: "a log\n"}}
	sum, count := 0, 0
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		for _, with := range slices.Sorted(maps.Keys(logs)) {
			result, printed := kinds[kind], logs[with]
			for range 20 { // IDs differ in their number of tokens
				o := outcomeWith(result, printed)
				o.Envelope.RunID = fmt.Sprintf("run_%016x%016x", random.Uint64(), random.Uint64())
				res, err := bare.finished(t.Context(), o, server.Stateless)
				if err != nil {
					t.Fatal(err)
				}
				beside := overhead(res, resultText(result), printed)
				sum, count = sum+countTokens(beside), count+1
				if got := countTokens(beside); got > maxOverhead {
					t.Errorf("%s%s: got %d tokens beside the result, want at most %d: %q", kind, with, got, maxOverhead,
						beside)
				}
			}
		}
	}
	t.Logf("%.1f tokens on average over %d answers", float64(sum)/float64(count), count)
}

// overhead returns the text of an answer besides the result and the output.
func overhead(res *mcp.CallToolResult, result string, printed orchestrator.Printed) string {
	text := strings.Replace(textOf(res), result, "", 1)
	for _, log := range []string{printed.Stdout, printed.Stderr} {
		text = strings.Replace(text, strings.TrimSuffix(log, "\n"), "", 1)
	}
	return text
}

// Structured content adds at most the names of its members.
func TestStructuredContentIsLean(t *testing.T) {
	for _, data := range []string{`1`, `"x"`, `{"rows":[1,2,3]}`} {
		res, err := bare.finished(t.Context(), outcomeWith(ok(data), orchestrator.Printed{}), server.Stateless)
		if err != nil {
			t.Fatal(err)
		}
		want := `{"ok":true,"data":` + data + `,"run_id":"run_0123456789abcdef0123456789abcdef"}`
		if got := string(res.StructuredContent.(json.RawMessage)); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
