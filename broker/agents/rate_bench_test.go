package agents_test

import (
	"context"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/airlock-mcp/airlock/broker/agents"
	"github.com/airlock-mcp/airlock/broker/audit"
	"github.com/airlock-mcp/airlock/broker/budget"
	"github.com/airlock-mcp/airlock/internal/database"
)

func BenchmarkDecisions(b *testing.B) {
	dir := b.TempDir()
	log, err := audit.Open(filepath.Join(dir, "audit"), nil)
	if err != nil {
		b.Fatal(err)
	}
	defer log.Close()
	db, err := database.Open(b.Context(), filepath.Join(dir, "state.db"), agents.Schema+"CREATE TABLE bare (n INTEGER);")
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	service, err := agents.New(agents.Options{Database: db, Log: log})
	if err != nil {
		b.Fatal(err)
	}
	defer service.Close()
	plenty := int64(1 << 40)
	agent, _, err := service.Register(b.Context(), agents.Registration{Name: "bench", Type: agents.Supervised, PrincipalID: "bench", Budget: budget.Limits{HourRequests: &plenty}}, "bench")
	if err != nil {
		b.Fatal(err)
	}
	var n atomic.Int64
	b.Run("bare", func(b *testing.B) {
		b.SetParallelism(8)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if err := db.Update(context.Background(), func(tx database.Tx) error {
					_, err := tx.ExecContext(context.Background(), `INSERT INTO bare VALUES (?)`, n.Add(1))
					return err
				}); err != nil {
					b.Error(err)
				}
			}
		})
	})
	b.Run("verify", func(b *testing.B) {
		b.SetParallelism(8)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				k := n.Add(1)
				d, err := service.VerifyAction(context.Background(), agent.ID, []byte(fmt.Sprintf(`{"type": "calculate", "query": "%d + 1"}`, k)),
					[]byte(fmt.Sprintf(`{"conversation_id": "c%d", "step_number": %d}`, k, 1)))
				if err != nil || d.Decision != agents.Approved {
					b.Errorf("%+v %v", d, err)
				}
			}
		})
	})
}
