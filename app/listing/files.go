package listing

import (
	"context"

	"github.com/airlock-mcp/airlock/app/attachment"
	"github.com/airlock-mcp/airlock/app/copies"
	"github.com/airlock-mcp/airlock/internal/caller"
)

// Files are the files that the runs of all nodes have attached.
type Files struct {
	copies.RunFiles
	lists *Lists
}

// Files returns the files of all nodes.
func (l *Lists) Files() Files { return Files{l.opts.Attached, l} }

// OfCaller returns the files that the runs of a caller have attached at all nodes. Those of each node are in order, the
// newest first. Those of nodes that do not answer are missing.
func (f Files) OfCaller(ctx context.Context, who caller.Caller) (sets []attachment.Set) {
	parts, _, err := gather(ctx, f.lists, kindFiles, who, struct{}{}, f.lists.ownFiles)
	if err != nil {
		return f.RunFiles.OfCaller(ctx, who)
	}
	for i, more := 0, true; more; i++ {
		more = false
		for _, p := range parts {
			if i < len(p.list) {
				sets, more = append(sets, p.list[i]), true
			}
		}
	}
	return sets
}

func (l *Lists) ownFiles(who caller.Caller, _ struct{}) ([]attachment.Set, error) {
	return l.opts.Attached.OfCaller(context.Background(), who), nil
}
