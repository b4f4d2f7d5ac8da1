package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/internal/strictjson"
)

// maxSetLine is the longest line of a retrieval set in bytes.
const maxSetLine = 16 << 20

// retrievalTool is one line of a retrieval set's tools: {"id", "server", "name",
// "description", "inputSchema"}. Its schema need not be valid: sets come from
// everywhere.
type retrievalTool struct {
	ID          string          `json:"id"`
	Server      string          `json:"server"`
	Name        string          `json:"name"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"inputSchema"`
}

// retrievalQuery is one line of a retrieval set's queries: {"id", "query",
// "gold", "any"}.
type retrievalQuery struct {
	ID    string `json:"id"`
	Query string `json:"query"`
	// Gold are the wanted tools; each item is one ID, or a list of IDs of which
	// any will do. A query without any is off-topic: no tool fits it.
	Gold []retrievalGold `json:"gold"`
	// Any reports that one hit is enough.
	Any bool `json:"any"`
}

// retrievalGold is one wanted tool: the IDs that count as it.
type retrievalGold []string

// UnmarshalJSON takes one ID or a list of them.
func (g *retrievalGold) UnmarshalJSON(raw []byte) error {
	var one string
	if err := strictjson.UnmarshalOpen(raw, &one); err == nil {
		*g = retrievalGold{one}
		return nil
	}
	var many []string
	if err := strictjson.UnmarshalOpen(raw, &many); err != nil {
		return fmt.Errorf("gold is neither an ID nor a list of IDs: %w", err)
	}
	*g = many
	return nil
}

// quality is how well a search did over the queries of a set that want a tool,
// each figure a mean between 0 and 1: recall among the first 1, 3, 5 and 10, the
// normalised discounted cumulative gain among the first 5 and 10, and the
// reciprocal rank of the first hit; and how many queries that want none got one.
type quality struct {
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

// readToolLines reads one tool a line.
func readToolLines(r io.Reader) ([]retrievalTool, error) { return readLines[retrievalTool](r) }

// readQueryLines reads one query a line.
func readQueryLines(r io.Reader) ([]retrievalQuery, error) {
	queries, err := readLines[retrievalQuery](r)
	if err != nil {
		return nil, err
	}
	for _, q := range queries {
		if !q.Any && slices.ContainsFunc(q.Gold, func(g retrievalGold) bool { return len(g) == 0 }) {
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

// ranking returns the IDs of the tools that fit a query, best first.
type ranking func(query string) []string

// measureSearch runs every query of a retrieval set and returns the quality of the answers.
func measureSearch(tools []retrievalTool, queries []retrievalQuery) (quality, error) {
	snapshot, ids, err := snapshotOf(tools)
	if err != nil {
		return quality{}, err
	}
	return measure(queries, rankTools(snapshot, ids, nil)), nil
}

// snapshotOf returns the tools of a retrieval set as a snapshot, and their IDs.
func snapshotOf(tools []retrievalTool) (*catalog.Snapshot, map[catalog.ToolRef]string, error) {
	ids := map[catalog.ToolRef]string{}
	at := map[string]int{}
	var servers []catalog.Server
	for _, t := range tools {
		i, known := at[t.Server]
		if !known {
			i = len(servers)
			at[t.Server] = i
			servers = append(servers, catalog.Server{ID: t.Server})
		}
		servers[i].Tools = append(servers[i].Tools,
			catalog.Tool{ServerID: t.Server, Name: t.Name, Description: t.Description, InputSchema: t.InputSchema})
		ids[catalog.ToolRef{ServerID: t.Server, ToolName: t.Name}] = t.ID
	}
	snapshot, err := catalog.NewSnapshot(servers)
	return snapshot, ids, err
}

// rankTools returns the ranking of the catalog, without a limit on the number of answers. similar
// may be nil.
func rankTools(snapshot *catalog.Snapshot, ids map[catalog.ToolRef]string,
	similar func(query string) []catalog.Similar) ranking {
	return func(query string) []string {
		q := catalog.Query{Text: query, Limit: catalog.MaxLimit}
		if similar != nil {
			q.Similar = similar(query)
		}
		var ranked []string
		for {
			answer := snapshot.Find(q)
			for _, tool := range answer.Tools {
				ranked = append(ranked, ids[catalog.ToolRef{ServerID: tool.ServerID, ToolName: tool.ToolName}])
			}
			if q.Offset = len(ranked); len(answer.Tools) == 0 || q.Offset >= answer.Total {
				return ranked
			}
		}
	}
}

// measure runs every query of a retrieval set through rank and returns the quality of the
// answers.
func measure(queries []retrievalQuery, rank ranking) quality {
	var sum quality
	for _, q := range queries {
		ranked := rank(q.Query)
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
func (q retrievalQuery) wanted() []retrievalGold {
	if !q.Any {
		return q.Gold
	}
	return []retrievalGold{slices.Concat(q.Gold...)}
}

// judge scores one ranking. Each wanted item counts once, at its best rank.
func judge(ranked []string, wanted []retrievalGold) quality {
	var q quality
	open := slices.Clone(wanted)
	share := 1 / float64(len(wanted))
	for i, id := range ranked {
		at := slices.IndexFunc(open, func(g retrievalGold) bool { return slices.Contains(g, id) })
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
func (q *quality) count(rank int, share float64) {
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
func (q *quality) figures() []*float64 {
	return []*float64{&q.Recall1, &q.Recall3, &q.Recall5, &q.Recall10, &q.NDCG5, &q.NDCG10, &q.MRR}
}

func (q *quality) add(one quality) {
	more := one.figures()
	for i, figure := range q.figures() {
		*figure += *more[i]
	}
}

func (q quality) mean() quality {
	for _, figure := range q.figures() {
		*figure /= float64(max(q.Queries, 1))
	}
	return q
}
