package catalog

import (
	"bytes"
	"slices"
)

// earlier is what a former snapshot knows of the tools of a new one. The zero
// value knows nothing.
type earlier struct {
	at      []int // for each tool of the new snapshot its position in the former one, or -1
	docs    []document
	entries []Entry
	shown   []*Tool
}

// position returns the index of an unchanged tool in the former snapshot.
func (e earlier) position(tool int) (int, bool) {
	if tool >= len(e.at) || e.at[tool] < 0 {
		return 0, false
	}
	return e.at[tool], true
}

// unchanged finds what of a former snapshot still holds: of the tools with the
// same definitions that pose as no others' than before. nil knows nothing.
func (s *Snapshot) unchanged(before *Snapshot) earlier {
	if before == nil || len(before.tools) == 0 {
		return earlier{}
	}
	before.searchOnce.Do(func() { before.prepareSearch(earlier{}) })
	known := earlier{at: make([]int, len(s.tools)), docs: before.docs, entries: before.entries}
	for i := range before.Shown() {
		tools := before.shown[i].Tools
		for j := range tools {
			known.shown = append(known.shown, &tools[j])
		}
	}
	positions := make(map[toolKey]int, len(before.tools))
	for i, tool := range before.tools {
		positions[toolKey{tool.ServerID, tool.Name}] = i
	}
	poses, posed := s.allPoses(), before.allPoses()
	for i, tool := range s.tools {
		known.at[i] = -1
		was, found := positions[toolKey{tool.ServerID, tool.Name}]
		if found && tool.same(before.tools[was]) && slices.Equal(poses[i], posed[was]) {
			known.at[i] = was
		}
	}
	return known
}

// same reports whether two tools were read from the same definition.
func (t *Tool) same(other *Tool) bool {
	return t.Digest != "" && t.Digest == other.Digest && t.Withheld == other.Withheld && bytes.Equal(t.Raw, other.Raw)
}

// allPoses returns for each tool all that makes its text depend on other tools:
// how it poses as another server's, among those that are seen and among all.
func (s *Snapshot) allPoses() [][]Flag {
	s.posesOnce.Do(func() {
		s.poses = make([][]Flag, len(s.tools))
		for i, tool := range s.tools {
			s.poses[i] = s.imitations(tool)
			if s.whole != nil {
				s.poses[i] = slices.Concat(s.poses[i], []Flag{{}}, s.whole.imitations(tool))
			}
		}
	})
	return s.poses
}
