package database_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/airlock-mcp/airlock/internal/database"
)

func TestRewrite(t *testing.T) {
	onBoth(t, func(t *testing.T, open opener) {
		db := open.must(t, `CREATE TABLE secret (name TEXT PRIMARY KEY, value BLOB NOT NULL) STRICT`)
		if err := db.Update(t.Context(), func(tx database.Tx) error {
			_, err := tx.ExecContext(t.Context(), "INSERT INTO secret VALUES ('a', ?), ('b', ?)", []byte("1"),
				[]byte("2"))
			return err
		}); err != nil {
			t.Fatal(err)
		}
		refused := errors.New("refused")
		for _, test := range []struct {
			name, to string
			fails    error
			done     bool
		}{{"a", "3", nil, true}, {"b", "", nil, false}, {"b", "4", refused, false}, {"c", "5", nil, false}} {
			done, err := db.Rewrite(t.Context(), "secret", "value", "name = ?", []any{test.name},
				func([]byte) ([]byte, error) {
					if test.to == "" {
						return nil, nil
					}
					return []byte(test.to), test.fails
				})
			if done != test.done || !errors.Is(err, test.fails) {
				t.Errorf("%+v: %v, %v", test, done, err)
			}
		}
		all, err := database.Rows(t.Context(), db, "SELECT value FROM secret WHERE name < ? ORDER BY name", []any{"c"},
			database.Column[[]byte])
		if err != nil || string(bytes.Join(all, []byte(" "))) != "3 2" {
			t.Errorf("the values are %q (%v)", all, err)
		}
	})
}
