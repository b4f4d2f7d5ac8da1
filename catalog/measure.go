package catalog

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/airlock-mcp/airlock/internal/strictjson"
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
	// any will do. A query without any is off-topic: no tool fits it.
	Gold []RetrievalGold `json:"gold"`
	// Any reports that one hit is enough.
	Any bool `json:"any"`
}

// RetrievalGold is one wanted tool: the IDs that count as it.
type RetrievalGold []string

// UnmarshalJSON takes one ID or a list of them.
func (g *RetrievalGold) UnmarshalJSON(raw []byte) error {
	var one string
	if err := strictjson.UnmarshalOpen(raw, &one); err == nil {
		*g = RetrievalGold{one}
		return nil
	}
	var many []string
	if err := strictjson.UnmarshalOpen(raw, &many); err != nil {
		return fmt.Errorf("gold is neither an ID nor a list of IDs: %w", err)
	}
	*g = many
	return nil
}

// Quality is how well a search did over the queries of a set that want a tool,
// each figure a mean between 0 and 1: recall among the first 1, 3, 5 and 10, the
// normalised discounted cumulative gain among the first 5 and 10, and the
// reciprocal rank of the first hit; and how many queries that want none got one.
type Quality struct {
	Queries  int     `json:"queries"`
	Recall1  float64 `json:"recall@1"`
	Recall3  float64 `json:"recall@3"`
	Recall5  float64 `json:"recall@5"`
	Recall10 float64 `json:"recall@10"`
	NDCG5    float64 `json:"ndcg@5"`
	NDCG10   float64 `json:"ndcg@10"`
	MRR      float64 `json:"mrr"`
	// Unanswered counts the queries that want a tool and got none.
	Unanswered int `json:"unanswered"`
	// OffTopic counts the queries that want no tool, OffTopicAnswered those of
	// them that got one.
	OffTopic         int `json:"offTopic"`
	OffTopicAnswered int `json:"offTopicAnswered"`
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
		if !q.Any && slices.ContainsFunc(q.Gold, func(g RetrievalGold) bool { return len(g) == 0 }) {
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
		if err := strictjson.UnmarshalOpen(scanner.Bytes(), &item); err != nil {
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

// Ranking returns the positions of the tools that fit a query, best first.
type Ranking func(query string) []int

// MeasureSearch runs every query of a retrieval set and returns the quality of the
// answers. It ranks like Search, without a limit on the number of answers.
func MeasureSearch(tools []RetrievalTool, queries []RetrievalQuery) Quality {
	return Measure(tools, queries, RankTools(tools))
}

// RankTools returns the ranking of Search over the tools of a retrieval set.
func RankTools(tools []RetrievalTool) Ranking { return RankToolsWith(tools, nil) }

// RankToolsWith is RankTools fused with tools that are near in meaning: similar names
// them by their IDs, in the place of a server's. nil fuses nothing.
func RankToolsWith(tools []RetrievalTool, similar func(query string) []Similar) Ranking {
	docs := make([]document, len(tools))
	at := map[string]int{}
	for i, t := range tools {
		tool := &Tool{ServerID: t.Server, Name: t.Name, Description: t.Description, InputSchema: t.InputSchema}
		docs[i] = searched(tool, shownText{description: Clean(t.Description)})
		at[t.ID] = i
	}
	x := newIndex(docs)
	return func(query string) []int {
		hits := x.search(query, func(int) bool { return true })
		ranked := make([]int, len(hits))
		for i, hit := range hits {
			ranked[i] = hit.doc
		}
		if similar == nil {
			return ranked
		}
		var places []similarPlace
		for _, near := range similar(query) {
			if doc, ok := at[near.ServerID]; ok {
				places = append(places, similarPlace{doc, near.Alone})
			}
		}
		return fuse(ranked, places)
	}
}

// Measure runs every query of a retrieval set through rank and returns the quality of the
// answers.
func Measure(tools []RetrievalTool, queries []RetrievalQuery, rank Ranking) Quality {
	var sum Quality
	for _, q := range queries {
		var ranked []string
		for _, at := range rank(q.Query) {
			ranked = append(ranked, tools[at].ID)
		}
		switch {
		case len(q.Gold) == 0:
			sum.OffTopic++
			if len(ranked) > 0 {
				sum.OffTopicAnswered++
			}
		default:
			sum.Queries++
			if len(ranked) == 0 {
				sum.Unanswered++
			}
			sum.add(judge(ranked, q.wanted()))
		}
	}
	return sum.mean()
}

// wanted returns the gold items. If one hit is enough, it combines them into one item.
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
		q.count(i, share)
	}
	q.NDCG5 /= idealGain(len(wanted), 5)
	q.NDCG10 /= idealGain(len(wanted), 10)
	return q
}

// count adds a hit at a rank, counted from 0.
func (q *Quality) count(rank int, share float64) {
	if rank < 1 {
		q.Recall1 += share
	}
	if rank < 3 {
		q.Recall3 += share
	}
	if rank < 5 {
		q.Recall5 += share
		q.NDCG5 += gain(rank)
	}
	if rank < 10 {
		q.Recall10 += share
		q.NDCG10 += gain(rank)
	}
}

// idealGain is what n hits are worth at best among the first limit.
func idealGain(n, limit int) float64 {
	ideal := 0.0
	for i := range min(n, limit) {
		ideal += gain(i)
	}
	return ideal
}

// gain is what a hit at a rank, counted from 0, is worth.
func gain(rank int) float64 { return 1 / math.Log2(float64(rank)+2) }

// figures are the means, in the order of the fields.
func (q *Quality) figures() []*float64 {
	return []*float64{&q.Recall1, &q.Recall3, &q.Recall5, &q.Recall10, &q.NDCG5, &q.NDCG10, &q.MRR}
}

func (q *Quality) add(one Quality) {
	more := one.figures()
	for i, figure := range q.figures() {
		*figure += *more[i]
	}
}

func (q Quality) mean() Quality {
	for _, figure := range q.figures() {
		*figure /= float64(max(q.Queries, 1))
	}
	return q
}
