package listing

import (
	"context"
	"encoding/json"

	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/strictjson"
)

// PieceQuery selects a piece of the audit log of a node, see audit.ReadPiece.
type PieceQuery struct {
	Node   string
	First  uint64
	Offset int64
}

// Piece returns a piece of the audit log of a node. The caller must be allowed to see the log.
func (l *Lists) Piece(ctx context.Context, who caller.Caller, q PieceQuery) (p audit.Piece, err error) {
	if q.Node == l.opts.Node.Name() {
		return l.ownPiece(who, q)
	}
	query, err := json.Marshal(q)
	if err != nil {
		return p, err
	}
	text, err := json.Marshal(question{kindLog, who, query})
	if err != nil {
		return p, err
	}
	answer, err := l.opts.Node.AskOne(ctx, q.Node, text)
	if err == nil {
		err = strictjson.UnmarshalOpen(answer, &p)
	}
	return p, err
}

func (l *Lists) ownPiece(who caller.Caller, q PieceQuery) (audit.Piece, error) {
	if !who.May(caller.People, caller.See, caller.Object{Kind: caller.Log}) {
		return audit.Piece{}, errLog
	}
	return audit.ReadPiece(l.opts.Audit, q.First, q.Offset)
}
