package policies

import (
	"bytes"
	"slices"

	"github.com/cedar-policy/cedar-go"
)

// statement is one policy of a file, without its place and its comments.
type statement struct {
	text        string
	forbid      bool
	conditional bool // it asks for more than a permit, such as a person's approval
}

func statements(files []File) (map[string]statement, error) {
	all := map[string]statement{}
	for _, file := range files {
		list, err := parse(file)
		if err != nil {
			return nil, err
		}
		for _, policy := range list {
			s := statement{text: string(bytes.TrimSpace(policy.MarshalCedar())),
				forbid: policy.Effect() == cedar.Forbid}
			for key := range policy.Annotations() {
				s.conditional = s.conditional || !slices.Contains(descriptive, string(key))
			}
			all[s.text] = s
		}
	}
	return all, nil
}

// descriptive are the annotations that decide nothing.
var descriptive = []string{"id", "reason", "description"}

// Widens returns the policies because of which after may permit what before does not,
// or may permit it without asking. It is empty only if every call that after permits is
// permitted by before under the same conditions: no permit was added, no forbid was
// removed, and no permit was removed that asks a person. A changed policy is one that
// was removed and one that was added.
func Widens(before, after []File) ([]string, error) {
	was, err := statements(before)
	if err != nil {
		return nil, err
	}
	is, err := statements(after)
	if err != nil {
		return nil, err
	}
	var widening []string
	for text, s := range is {
		if _, there := was[text]; !there && !s.forbid {
			widening = append(widening, "added: "+text)
		}
	}
	for text, s := range was {
		if _, there := is[text]; !there && (s.forbid || s.conditional) {
			widening = append(widening, "removed: "+text)
		}
	}
	slices.Sort(widening)
	return widening, nil
}
