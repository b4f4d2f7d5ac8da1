package auth

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/database"
	"github.com/airlock-mcp/airlock/internal/nearest"
	"github.com/airlock-mcp/airlock/internal/secret"
	"github.com/airlock-mcp/airlock/internal/strictjson"
	"github.com/airlock-mcp/airlock/internal/telemetry"
)

// Schema makes the table of tokens.
const Schema = `
CREATE TABLE token (
	id        TEXT PRIMARY KEY,
	name      TEXT NOT NULL,
	principal TEXT NOT NULL,
	profile   TEXT NOT NULL,
	scopes    TEXT NOT NULL, -- with spaces between them
	hash      BLOB NOT NULL UNIQUE, -- SHA-256
	created   INTEGER NOT NULL, -- seconds since 1970
	expires   INTEGER NOT NULL, -- 0: never
	revoked   INTEGER NOT NULL  -- 0: not
) STRICT;`

// SchemaCreators adds the credentials with which tokens were made.
const SchemaCreators = `
ALTER TABLE token ADD COLUMN creators TEXT NOT NULL DEFAULT '[]'; -- JSON of caller.Credential
`

// SchemaFacts adds the facts of a token.
const SchemaFacts = `
ALTER TABLE token ADD COLUMN facts TEXT NOT NULL DEFAULT '{}'; -- JSON of caller.Facts`

// prefix begins every token, so that scanners find one that leaked.
const prefix = "airlock_"

// Grant is what a token is made for.
type Grant struct {
	Name      string // what people call the token
	Principal string // whom it identifies; empty: a principal of the token alone, named by its ID
	Profile   string // empty for the default one
	Scopes    []string
	Expires   time.Time // zero: never
	// Creators are the credentials of the caller that makes the token. The token ends with the first of them.
	Creators []caller.Credential
	Facts    caller.Facts
}

// Token is a token as a list shows it: never the secret.
type Token struct {
	ID        string       `json:"token_id"`
	Name      string       `json:"name"`
	Principal string       `json:"principal"`
	Profile   string       `json:"profile,omitempty"`
	Scopes    []string     `json:"scopes"`
	Created   time.Time    `json:"created"`
	Expires   *time.Time   `json:"expires,omitempty"`
	Revoked   *time.Time   `json:"revoked,omitempty"`
	Facts     caller.Facts `json:"facts,omitzero"`
	// Used is the day (UTC) of its last use; nil if it was not used.
	Used *time.Time `json:"last_used,omitempty"`
}

// Tokens are the tokens that Airlock issued. Its methods are safe for concurrent use.
type Tokens struct {
	db     *database.DB
	now    func() time.Time
	uses   uses
	recent recent
}

// NewTokens returns the tokens of a database with the table of Schema. now is the
// clock; nil means time.Now.
func NewTokens(db *database.DB, now func() time.Time) *Tokens {
	if now == nil {
		now = time.Now
	}
	return &Tokens{db: db, now: now}
}

// maxName bounds names in bytes.
const maxName = 200

// Check returns an error if a grant is not valid.
func (g Grant) Check() error {
	for field, text := range map[string]string{"name": g.Name, "principal": g.Principal} {
		if field == "principal" && text == "" {
			continue
		}
		if strings.TrimSpace(text) == "" || len(text) > maxName ||
			strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			return fmt.Errorf("the %s of a token must have 1 to %d bytes and no control characters", field, maxName)
		}
	}
	if len(g.Scopes) == 0 {
		return fmt.Errorf("a token needs a scope: %s", strings.Join(Scopes, ", "))
	}
	for _, scope := range g.Scopes {
		if !slices.Contains(Scopes, scope) {
			return fmt.Errorf("there is no scope %q%s", scope, nearest.Hint(scope, Scopes))
		}
	}
	return checkFacts(g.Facts)
}

// Create issues a token and returns its value, of which only the hash is stored.
func (t *Tokens) Create(ctx context.Context, g Grant) (Token, secret.Value, error) {
	if err := g.Check(); err != nil {
		return Token{}, secret.Value{}, err
	}
	raw := make([]byte, 32)
	rand.Read(raw) // never fails
	value := secret.New(prefix + hex.EncodeToString(raw))
	now := t.now().UTC().Truncate(time.Second)
	made := Token{ID: telemetry.NewID("tok"), Name: g.Name, Principal: g.Principal, Profile: g.Profile, Created: now,
		Facts: g.Facts}
	if made.Principal == "" {
		made.Principal = made.ID
	}
	made.Scopes = slices.Compact(slices.Sorted(slices.Values(g.Scopes)))
	expires := int64(0)
	if !g.Expires.IsZero() {
		expires = g.Expires.Unix()
		end := time.Unix(expires, 0).UTC()
		made.Expires = &end
	}
	creators, err := json.Marshal(append([]caller.Credential{}, g.Creators...))
	if err != nil {
		return Token{}, secret.Value{}, err
	}
	facts, err := json.Marshal(made.Facts)
	if err != nil {
		return Token{}, secret.Value{}, err
	}
	err = t.db.Exec(ctx, `INSERT INTO token VALUES (?, ?, ?, ?, ?, ?, ?, ?, 0, ?, ?)`,
		made.ID, made.Name, made.Principal, made.Profile, strings.Join(made.Scopes, " "), hash(value), now.Unix(),
		expires, string(creators), string(facts))
	if err != nil {
		return Token{}, secret.Value{}, fmt.Errorf("keeping token %q: %w", g.Name, err)
	}
	return made, value, nil
}

func hash(value secret.Value) []byte {
	sum := sha256.Sum256([]byte(value.Reveal()))
	return sum[:]
}

// Authenticate returns the caller that a token identifies, or an *InvalidError.
func (t *Tokens) Authenticate(ctx context.Context, value secret.Value) (caller.Caller, error) {
	found, err := t.prove(ctx, value)
	return found.who, err
}

// prove is Authenticate with the credentials that the token was made with.
func (t *Tokens) prove(ctx context.Context, value secret.Value) (proof, error) {
	return lastKnown(t, string(hash(value)), func() (proof, error) { return t.authenticate(ctx, value) })
}

func (t *Tokens) authenticate(ctx context.Context, value secret.Value) (proof, error) {
	sum := hash(value)
	var who caller.Caller
	var made []caller.Credential
	err := t.db.Query(ctx, func(tx database.Tx) error {
		var id, scopes, facts, creators string
		var stored []byte
		var expires, revoked int64
		// The index is over hashes, so the duration of the query reveals nothing about a token.
		err := tx.QueryRowContext(ctx, `SELECT id, principal, profile, scopes, hash, expires, revoked, facts, creators
			FROM token WHERE hash = ?`, sum).Scan(&id, &who.Principal, &who.Profile, &scopes, &stored, &expires, &revoked, &facts, &creators)
		if errors.Is(err, sql.ErrNoRows) {
			if !strings.HasPrefix(value.Reveal(), prefix) {
				return invalid(Malformed)
			}
			return invalid(Unknown)
		}
		switch {
		case err != nil:
			return err
		case subtle.ConstantTimeCompare(stored, sum) != 1:
			return invalid(Unknown)
		case revoked != 0:
			return &InvalidError{Reason: Revoked, TokenID: id}
		case expires != 0 && t.now().Unix() >= expires:
			return &InvalidError{Reason: Expired, TokenID: id}
		}
		who.Kind, who.Session, who.Scopes = caller.User, id, strings.Fields(scopes)
		who.Credentials = []caller.Credential{{ID: id, Scopes: strings.Fields(scopes), Profile: who.Profile}}
		if expires != 0 {
			who.Credentials[0].Expires = time.Unix(expires, 0)
		}
		if slices.Contains(who.Scopes, ScopeAdmin) {
			who.Scopes = append(who.Scopes, caller.ScopeAllRuns)
		}
		if err := strictjson.UnmarshalOpen([]byte(creators), &made); err != nil {
			return fmt.Errorf("reading how token %q was made: %w", id, err)
		}
		return strictjson.UnmarshalOpen([]byte(facts), &who.Facts)
	})
	if err != nil {
		return proof{}, err
	}
	return proof{who, true, made}, nil
}

// List returns all tokens, the newest first.
func (t *Tokens) List(ctx context.Context) ([]Token, error) {
	query := `SELECT token.id, name, principal, profile, scopes, created, expires, revoked, coalesce(day, 0), facts
		FROM token LEFT JOIN credential_use ON credential_use.id = token.id ORDER BY created DESC, token.id`
	return database.Rows(ctx, t.db, query, nil, func(rows *sql.Rows) (one Token, err error) {
		var scopes, facts string
		var created, expires, revoked, used int64
		if err := rows.Scan(&one.ID, &one.Name, &one.Principal, &one.Profile, &scopes, &created, &expires,
			&revoked, &used, &facts); err != nil {
			return one, err
		}
		if err := strictjson.UnmarshalOpen([]byte(facts), &one.Facts); err != nil {
			return one, fmt.Errorf("reading token %q: %w", one.ID, err)
		}
		one.Scopes, one.Created = strings.Fields(scopes), time.Unix(created, 0).UTC()
		one.Expires, one.Revoked, one.Used = moment(expires), moment(revoked), moment(used)
		return one, nil
	})
}

// maxEnds bounds the tokens that Ends returns.
const maxEnds = 1000

// Ends returns the times at which valid tokens expire, in seconds since 1970, by their IDs. It omits
// tokens that never expire, and returns at most maxEnds: those that expire first.
func (t *Tokens) Ends(ctx context.Context) (map[string]int64, error) {
	ends := map[string]int64{}
	err := t.db.Query(ctx, func(tx database.Tx) error {
		clear(ends)
		var id string
		var expires int64
		return database.ScanRows(ctx, tx, `SELECT id, expires FROM token WHERE revoked = 0 AND expires > ?
			ORDER BY expires LIMIT ?`, []any{t.now().Unix(), maxEnds}, []any{&id, &expires}, func() error {
			ends[id] = expires
			return nil
		})
	})
	return ends, err
}

// moment is a time of the table; nil for none.
func moment(seconds int64) *time.Time {
	if seconds == 0 {
		return nil
	}
	at := time.Unix(seconds, 0).UTC()
	return &at
}

// ErrUnknown is returned if no token has the given ID.
var ErrUnknown = errors.New("there is no such token")

// Revoke makes a token invalid forever. When it returns, no node that reaches the database accepts the token; one that
// does not may for graceTime.
func (t *Tokens) Revoke(ctx context.Context, id string) error {
	return t.narrow(ctx, func(tx database.Tx) error {
		revoked, err := database.Changed(ctx, tx, `UPDATE token SET revoked = ? WHERE id = ? AND revoked = 0`,
			t.now().Unix(), id)
		if err != nil || revoked {
			return err
		}
		var there int
		if err := tx.QueryRowContext(ctx, `SELECT count(*) FROM token WHERE id = ?`, id).Scan(&there); err != nil ||
			there == 1 {
			return err
		}
		return ErrUnknown
	})
}
