package auth

import (
	"context"
	"fmt"
	"time"

	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/database"
)

// SchemaSignOuts makes the table of the sign-ins and subjects of the issuer that were signed out.
const SchemaSignOuts = `
CREATE TABLE sign_out (
	who    TEXT PRIMARY KEY, -- a sign-in, or the digest of the name of a caller
	signed INTEGER NOT NULL  -- seconds since 1970: credentials that began at this time or earlier have ended
) STRICT;`

// SignOut ends one sign-in of a person, and everything that was started with it.
func (t *Tokens) SignOut(ctx context.Context, p Person) error {
	return t.signOut(ctx, p.signIn, t.now())
}

// SignOutSubject ends all credentials of a subject of the issuer that began before now: sign-ins to the console, and
// access tokens. name is ISSUER#SUBJECT. An access token that is issued within a minute is refused, too, because the
// clock of the issuer can be ahead. Such a token must say when it was issued.
func (t *Tokens) SignOutSubject(ctx context.Context, name string) error {
	return t.signOut(ctx, digest(name), t.now().Add(clockSkew))
}

func (t *Tokens) signOut(ctx context.Context, who string, at time.Time) error {
	return t.narrow(ctx, func(tx database.Tx) error {
		// No credential lives longer.
		if _, err := tx.ExecContext(ctx, `DELETE FROM sign_out WHERE signed < ?`,
			t.now().Add(-maxLifetime-2*clockSkew).Unix()); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `INSERT INTO sign_out (who, signed) VALUES (?, ?)
			ON CONFLICT (who) DO UPDATE SET signed = excluded.signed`, who, at.Unix())
		return err
	})
}

// checkSignedIn returns caller.ErrEnded if the sign-in or the subject of a mark was signed out.
func (t *Tokens) checkSignedIn(ctx context.Context, m mark) error {
	question := fmt.Sprintf("signed in %d %s %s", m.begin, m.subject, m.signIn)
	_, err := lastKnown(t, question, func() (n int, err error) {
		err = t.db.QueryRow(ctx, `SELECT count(*) FROM sign_out WHERE who IN (?, ?) AND signed >= ?`,
			[]any{m.subject, m.signIn, m.begin}, &n)
		if err == nil && n > 0 {
			err = fmt.Errorf("%w: signed out", caller.ErrEnded)
		}
		return n, err
	})
	return err
}
