package budget

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/airlock-mcp/airlock/internal/database"
)

// usageRow is the primary key of a row of budget_usage.
type usageRow struct {
	line
	start int64 // of the span, in seconds since 1970
}

// increment is what is added to a row.
type increment struct {
	Charge
	requests int64
}

// usage contains the sums that the updates of one commit add to the rows of the ledger.
type usage map[usageRow]increment

var _ database.Write = usage{}

// maxRows is how many rows one statement adds to. There is one statement for each number.
const maxRows = 16

// usageKey is the key of a usage: all are merged.
type usageKey struct{}

// Key returns the same for all.
func (usage) Key() any { return usageKey{} }

// After returns the sum.
func (u usage) After(earlier database.Write) database.Write {
	sum := earlier.(usage)
	for row, more := range u {
		sum[row] = sum[row].plus(more)
	}
	return sum
}

func (i increment) plus(more increment) increment {
	i.Cost, i.Tokens, i.requests = i.Cost+more.Cost, i.Tokens+more.Tokens, i.requests+more.requests
	return i
}

// Execute adds to the rows, in their order in the table.
func (u usage) Execute(ctx context.Context, tx database.Tx) error {
	rows := slices.SortedFunc(maps.Keys(u), func(a, b usageRow) int {
		return cmp.Or(cmp.Compare(a.account, b.account), cmp.Compare(a.seconds, b.seconds),
			cmp.Compare(a.start, b.start))
	})
	for some := range slices.Chunk(rows, maxRows) {
		args := make([]any, 0, 6*len(some))
		for _, row := range some {
			add := u[row]
			args = append(args, row.account, row.seconds, row.start, int64(add.Cost), add.requests, add.Tokens)
		}
		_, err := database.ExecKeeping(ctx, tx, `INSERT INTO budget_usage VALUES (?, ?, ?, ?, ?, ?)`+
			strings.Repeat(`, (?, ?, ?, ?, ?, ?)`, len(some)-1)+
			` ON CONFLICT (account, span, start) DO UPDATE SET cost = budget_usage.cost + excluded.cost,
			requests = budget_usage.requests + excluded.requests, tokens = budget_usage.tokens + excluded.tokens`, args...)
		if err != nil {
			return err
		}
	}
	return nil
}
