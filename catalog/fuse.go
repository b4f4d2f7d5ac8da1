package catalog

import (
	"cmp"
	"slices"
)

// fusionOffset is k of reciprocal rank fusion (Cormack, Clarke, Büttcher: "Reciprocal
// Rank Fusion outperforms Condorcet and individual Rank Learning Methods", 2009):
// the larger, the less the first places count against the later ones.
const fusionOffset = 10

// meaningShare is what a rank by meaning counts against one by words, which are the
// surer sign: a name that was asked for stays first.
const meaningShare = 0.3

// similarPlace is the position of a tool that is near in meaning.
type similarPlace struct {
	doc   int
	alone bool
}

// places returns the positions of tools, without those that are not wanted.
func (s *Snapshot) places(similar []Similar, wanted func(doc int) bool) []similarPlace {
	at := make(map[ToolRef]int, len(s.tools))
	for doc, tool := range s.tools {
		at[ToolRef{tool.ServerID, tool.Name}] = doc
	}
	var places []similarPlace
	for _, tool := range similar {
		if doc, ok := at[tool.ToolRef]; ok && wanted(doc) {
			places = append(places, similarPlace{doc, tool.Alone})
		}
	}
	return places
}

// fuse orders tools by the sum of their reciprocal ranks among those that words
// found and those that are near in meaning. Where words found nothing, a tool must
// fit by its meaning alone.
func fuse(found []int, similar []similarPlace) []int {
	scores := map[int]float64{}
	var order []int
	add := func(doc, rank int, share float64) {
		if scores[doc] == 0 {
			order = append(order, doc)
		}
		scores[doc] += share / float64(fusionOffset+rank+1)
	}
	for rank, doc := range found {
		add(doc, rank, 1)
	}
	for rank, near := range similar {
		if near.alone || len(found) > 0 {
			add(near.doc, rank, meaningShare)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(scores[b], scores[a]), cmp.Compare(a, b))
	})
	return order
}
