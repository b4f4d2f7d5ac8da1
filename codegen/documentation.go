package codegen

import (
	"fmt"
	"strings"
)

// documentation returns the text of a wrapper's docstring or comment: the tool's title and
// description, and a reference for parts that were cut. definition is the code that fetches
// the whole definition, with format verbs for server and tool.
func (w *wrapper) documentation(definition string) string {
	text, whole := paragraphs(w.tool.Description, maxDescription)
	title := oneLine(w.title(), maxSummary)
	var parts []string
	if title != "" && !strings.HasPrefix(strings.ToLower(text), strings.ToLower(title)) {
		parts = append(parts, endSentence(title))
	}
	if text != "" {
		parts = append(parts, text)
	}
	if len(parts) == 0 {
		parts = append(parts, fmt.Sprintf("Call the tool %s of server %s.", nodeLiteral(w.tool.Name),
			nodeLiteral(w.module.id)))
	}
	if hints := w.hints(); hints != "" {
		parts = append(parts, "The server says: "+hints+".")
	}
	if !whole || w.shortened {
		parts = append(parts, "Shortened here. The whole definition:\n"+
			fmt.Sprintf(definition, nodeLiteral(w.module.id), nodeLiteral(w.tool.Name)))
	}
	return strings.Join(parts, "\n\n")
}

// title returns the tool's display name: its own, else that of its annotations.
func (w *wrapper) title() string {
	if w.tool.Title != "" {
		return w.tool.Title
	}
	return w.tool.Annotations.Title
}

// hints words what the tool's annotations claim.
func (w *wrapper) hints() string {
	a := w.tool.Annotations
	var words []string
	claim := func(hint *bool, yes, no string) {
		switch {
		case hint == nil:
		case *hint && yes != "":
			words = append(words, yes)
		case !*hint && no != "":
			words = append(words, no)
		}
	}
	claim(a.ReadOnlyHint, "only reads", "")
	if a.ReadOnlyHint == nil || !*a.ReadOnlyHint {
		claim(a.DestructiveHint, "may destroy", "only adds")
		claim(a.IdempotentHint, "repeating changes nothing more", "")
	}
	return strings.Join(words, ", ")
}
