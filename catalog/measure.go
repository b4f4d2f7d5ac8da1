package catalog

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
)

// maxSetLine is the longest line of a retrieval set in bytes.
const maxSetLine = 16 << 20

// RetrievalTool is one line of a retrieval set's tools: {"id", "server", "name",
// "description", "inputSchema"}. Its schema need not be valid: sets come from
// everywhere.
type RetrievalTool struct {
	ID          string          `json:"id"`
	Server      string          `json:"server"`
	Name        string          `json:"name"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"inputSchema"`
}

// RetrievalQuery is one line of a retrieval set's queries: {"id", "query",
// "gold", "any"}.
type RetrievalQuery struct {
	ID    string `json:"id"`
	Query string `json:"query"`
	// Gold are the wanted tools; each item is one ID, or a list of IDs of which
	// any will do.
	Gold []RetrievalGold `json:"gold"`
	// Any says that a single hit is enough.
	Any bool `json:"any"`
}

// RetrievalGold is one wanted tool: the IDs that count as it.
type RetrievalGold []string

// UnmarshalJSON takes one ID or a list of them.
func (g *RetrievalGold) UnmarshalJSON(raw []byte) error {
	var one string
	if err := json.Unmarshal(raw, &one); err == nil {
		*g = RetrievalGold{one}
		return nil
	}
	var many []string
	if err := json.Unmarshal(raw, &many); err != nil {
		return fmt.Errorf("gold is neither an ID nor a list of IDs: %w", err)
	}
	*g = many
	return nil
}

// Quality is how well a search did over all queries of a set, each figure a
// mean between 0 and 1: recall among the first 1, 5 and 10, the normalised
// discounted cumulative gain among the first 10, and the reciprocal rank of the
// first hit.
type Quality struct {
	Queries  int     `json:"queries"`
	Recall1  float64 `json:"recall@1"`
	Recall5  float64 `json:"recall@5"`
	Recall10 float64 `json:"recall@10"`
	NDCG10   float64 `json:"ndcg@10"`
	MRR      float64 `json:"mrr"`
}

// ReadRetrievalTools reads one tool a line.
func ReadRetrievalTools(r io.Reader) ([]RetrievalTool, error) { return readLines[RetrievalTool](r) }

// ReadRetrievalQueries reads one query a line.
func ReadRetrievalQueries(r io.Reader) ([]RetrievalQuery, error) {
	queries, err := readLines[RetrievalQuery](r)
	if err != nil {
		return nil, err
	}
	for _, q := range queries {
		if len(q.Gold) == 0 {
			return nil, fmt.Errorf("query %q names no gold tool", q.ID)
		}
		if q.Any {
			continue
		}
		if slices.ContainsFunc(q.Gold, func(g RetrievalGold) bool { return len(g) == 0 }) {
			return nil, fmt.Errorf("query %q has a gold item that no tool can meet", q.ID)
		}
	}
	return queries, nil
}

func readLines[T any](r io.Reader) ([]T, error) {
	scanner := bufio.NewScanner(r)
	scanner.Buffer(nil, maxSetLine)
	var items []T
	for line := 1; scanner.Scan(); line++ {
		if len(scanner.Bytes()) == 0 {
			continue
		}
		var item T
		if err := json.Unmarshal(scanner.Bytes(), &item); err != nil {
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
		items = append(items, item)
	}
	if err := scanner.Err(); err != nil {
		return nil, err
	}
	if len(items) == 0 {
		return nil, errors.New("the file is empty")
	}
	return items, nil
}

// MeasureSearch asks every query of a retrieval set and says how good the
// answers were. It ranks as Search does, without a limit on the answers.
func MeasureSearch(tools []RetrievalTool, queries []RetrievalQuery) Quality {
	docs := make([]document, len(tools))
	for i, t := range tools {
		tool := &Tool{ServerID: t.Server, Name: t.Name, Description: t.Description, InputSchema: t.InputSchema}
		docs[i] = searched(tool, shownText{description: Clean(t.Description)})
	}
	x := newIndex(docs)
	sum := Quality{Queries: len(queries)}
	for _, q := range queries {
		var ranked []string
		for _, hit := range x.search(q.Query, len(tools), func(int) bool { return true }) {
			ranked = append(ranked, tools[hit.doc].ID)
		}
		sum.add(judge(ranked, q.wanted()))
	}
	return sum.mean()
}

// wanted returns the gold items; where one hit is enough they are one item.
func (q RetrievalQuery) wanted() []RetrievalGold {
	if !q.Any {
		return q.Gold
	}
	return []RetrievalGold{slices.Concat(q.Gold...)}
}

// judge scores one ranking. Each wanted item counts once, at its best rank.
func judge(ranked []string, wanted []RetrievalGold) Quality {
	var q Quality
	open := slices.Clone(wanted)
	share := 1 / float64(len(wanted))
	for i, id := range ranked {
		at := slices.IndexFunc(open, func(g RetrievalGold) bool { return slices.Contains(g, id) })
		if at < 0 {
			continue
		}
		open = slices.Delete(open, at, at+1)
		if q.MRR == 0 {
			q.MRR = 1 / float64(i+1)
		}
		if i < 1 {
			q.Recall1 += share
		}
		if i < 5 {
			q.Recall5 += share
		}
		if i < 10 {
			q.Recall10 += share
			q.NDCG10 += gain(i)
		}
	}
	ideal := 0.0
	for i := range min(len(wanted), 10) {
		ideal += gain(i)
	}
	q.NDCG10 /= ideal
	return q
}

// gain is what a hit at a rank, counted from 0, is worth.
func gain(rank int) float64 { return 1 / math.Log2(float64(rank)+2) }

func (q *Quality) add(one Quality) {
	q.Recall1 += one.Recall1
	q.Recall5 += one.Recall5
	q.Recall10 += one.Recall10
	q.NDCG10 += one.NDCG10
	q.MRR += one.MRR
}

func (q Quality) mean() Quality {
	n := float64(max(q.Queries, 1))
	return Quality{q.Queries, q.Recall1 / n, q.Recall5 / n, q.Recall10 / n, q.NDCG10 / n, q.MRR / n}
}
