package catalog_test

import (
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/internal/testenv"
)

// Plain BM25 over the same sets, as the corpus publishes it: the floor.
func TestSearchBeatsPlainBM25(t *testing.T) {
	tests := []struct {
		tools, queries string
		floor          catalog.Quality
	}{
		{"bfcl/tools.jsonl", "bfcl/queries.jsonl", catalog.Quality{Recall1: .550, Recall5: .805, Recall10: .867, NDCG10: .727, MRR: .697}},
		{"metatool/tools.jsonl", "metatool/queries.jsonl", catalog.Quality{Recall1: .404, Recall5: .591, Recall10: .657, NDCG10: .526, MRR: .491}},
		{"metatool/tools.jsonl", "metatool/queries_multi.jsonl", catalog.Quality{Recall1: .196, Recall5: .528, Recall10: .641, NDCG10: .501, MRR: .565}},
	}
	for _, test := range tests {
		t.Run(test.queries, func(t *testing.T) {
			got := catalog.MeasureSearch(readTools(t, test.tools), readQueries(t, test.queries))
			t.Logf("R@1 %.3f  R@5 %.3f  R@10 %.3f  nDCG@10 %.3f  MRR %.3f over %d queries",
				got.Recall1, got.Recall5, got.Recall10, got.NDCG10, got.MRR, got.Queries)
			for _, figure := range []struct {
				name      string
				got, over float64
			}{
				{"recall@1", got.Recall1, test.floor.Recall1},
				{"recall@5", got.Recall5, test.floor.Recall5},
				{"recall@10", got.Recall10, test.floor.Recall10},
				{"nDCG@10", got.NDCG10, test.floor.NDCG10},
				{"MRR", got.MRR, test.floor.MRR},
			} {
				if figure.got <= figure.over {
					t.Errorf("%s: got %.3f, want more than %.3f", figure.name, figure.got, figure.over)
				}
			}
		})
	}
}

func TestMeasureSearchCountsHits(t *testing.T) {
	tools := []catalog.RetrievalTool{
		{ID: "a", Server: "s", Name: "delete_file", Description: "Deletes a file."},
		{ID: "b", Server: "s", Name: "read_file", Description: "Reads a file."},
		{ID: "c", Server: "s", Name: "weather", Description: "Tells the forecast."},
	}
	second := 1 / math.Log2(3)
	tests := []struct {
		name  string
		query catalog.RetrievalQuery
		want  catalog.Quality
	}{
		{"a first hit counts whole",
			catalog.RetrievalQuery{Query: "forecast", Gold: []catalog.RetrievalGold{{"c"}}},
			catalog.Quality{Queries: 1, Recall1: 1, Recall5: 1, Recall10: 1, NDCG10: 1, MRR: 1}},
		{"a second place is half a rank",
			catalog.RetrievalQuery{Query: "delete file", Gold: []catalog.RetrievalGold{{"b"}}},
			catalog.Quality{Queries: 1, Recall5: 1, Recall10: 1, NDCG10: second, MRR: .5}},
		{"either of two IDs meets an item",
			catalog.RetrievalQuery{Query: "delete file", Gold: []catalog.RetrievalGold{{"c", "a"}}},
			catalog.Quality{Queries: 1, Recall1: 1, Recall5: 1, Recall10: 1, NDCG10: 1, MRR: 1}},
		{"two items, the first alone is half",
			catalog.RetrievalQuery{Query: "forecast", Gold: []catalog.RetrievalGold{{"c"}, {"a"}}},
			catalog.Quality{Queries: 1, Recall1: .5, Recall5: .5, Recall10: .5, NDCG10: 1 / (1 + second), MRR: 1}},
		{"any hit is enough",
			catalog.RetrievalQuery{Query: "forecast", Gold: []catalog.RetrievalGold{{"c"}, {"a"}}, Any: true},
			catalog.Quality{Queries: 1, Recall1: 1, Recall5: 1, Recall10: 1, NDCG10: 1, MRR: 1}},
		{"nothing found",
			catalog.RetrievalQuery{Query: "zebra", Gold: []catalog.RetrievalGold{{"c"}}},
			catalog.Quality{Queries: 1}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := catalog.MeasureSearch(tools, []catalog.RetrievalQuery{test.query}); got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

func readTools(t testing.TB, path string) []catalog.RetrievalTool {
	t.Helper()
	f := openSet(t, path)
	tools, err := catalog.ReadRetrievalTools(f)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return tools
}

func readQueries(t testing.TB, path string) []catalog.RetrievalQuery {
	t.Helper()
	f := openSet(t, path)
	queries, err := catalog.ReadRetrievalQueries(f)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return queries
}

func openSet(t testing.TB, path string) *os.File {
	t.Helper()
	f, err := os.Open(filepath.Join(testenv.Corpus(t), "retrieval", filepath.FromSlash(path)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}
