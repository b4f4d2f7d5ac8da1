package iatp

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/airlock-mcp/airlock/admission/agents"
	"github.com/airlock-mcp/airlock/internal/agekey"
	"github.com/airlock-mcp/airlock/internal/database"
)

// keyLife is the validity of a key. An agent gets a new key renewBefore the end of the old one,
// whose signatures stay valid until it ends.
const (
	keyLife     = 365 * 24 * time.Hour
	renewBefore = 30 * 24 * time.Hour
)

// Key is the public key of an agent.
type Key struct {
	ID      string            `json:"key_id"` // RFC 7638 thumbprint
	Agent   string            `json:"agent_id"`
	Public  ed25519.PublicKey `json:"public"`
	Created time.Time         `json:"created"`
	Expires time.Time         `json:"expires"`
	Revoked *time.Time        `json:"revoked,omitempty"`

	sealed []byte
}

// valid reports whether the key was valid at a time, has not expired now, and is not revoked.
func (k Key) valid(at, now time.Time) bool {
	return k.Revoked == nil && !at.Before(k.Created) && at.Before(k.Expires) && now.Before(k.Expires)
}

// thumbprint returns the ID of a key: RFC 7638, section 3, of an OKP key (RFC 8037).
func thumbprint(public ed25519.PublicKey) string {
	sum := sha256.Sum256(fmt.Appendf(nil, `{"crv":"Ed25519","kty":"OKP","x":"%s"}`, encode(public)))
	return encode(sum[:])
}

const keyColumns = `id, agent, public, sealed, created, expires, revoked`

func scanKey(row interface{ Scan(...any) error }) (Key, error) {
	var k Key
	var public []byte
	var created, expires, revoked int64
	if err := row.Scan(&k.ID, &k.Agent, &public, &k.sealed, &created, &expires, &revoked); err != nil {
		return k, err
	}
	if len(public) != ed25519.PublicKeySize || thumbprint(public) != k.ID {
		return k, fmt.Errorf("the stored key %q is damaged", k.ID)
	}
	k.Public, k.Created, k.Expires = public, time.Unix(created, 0).UTC(), time.Unix(expires, 0).UTC()
	if revoked != 0 {
		at := time.Unix(revoked, 0).UTC()
		k.Revoked = &at
	}
	return k, nil
}

func keysOf(ctx context.Context, tx database.Tx, query string, args ...any) ([]Key, error) {
	return database.RowsIn(ctx, tx, `SELECT `+keyColumns+` FROM agent_key `+query, args,
		func(rows *sql.Rows) (Key, error) { return scanKey(rows) })
}

// Keys returns all keys of an agent, including expired and revoked ones, newest first.
func (s *Service) Keys(ctx context.Context, agent string) (keys []Key, err error) {
	err = s.opts.Database.Query(ctx, func(tx database.Tx) error {
		keys, err = keysOf(ctx, tx, `WHERE agent = ? ORDER BY created DESC, id`, agent)
		return err
	})
	return keys, err
}

// Published returns at most n currently valid keys, of one active agent or of all (empty), ordered by ID,
// starting after the ID after. Keys of pinned agents are published where these are registered.
func (s *Service) Published(ctx context.Context, agent, after string, n int) (keys []Key, err error) {
	err = s.opts.Database.Query(ctx, func(tx database.Tx) error {
		keys, err = keysOf(ctx, tx,
			`WHERE revoked = 0 AND expires > ? AND (? = '' OR agent = ?) AND id > ? AND sealed IS NOT NULL AND NOT EXISTS
			(SELECT 1 FROM agent WHERE agent.id = agent_key.agent AND status <> ?) ORDER BY id LIMIT ?`,
			s.now().Unix(), agent, agent, after, agents.Active, n)
		return err
	})
	return keys, err
}

// JWK is a key in the form of a JWKS: RFC 7517, RFC 8037.
type JWK struct {
	KeyType   string `json:"kty"`
	Curve     string `json:"crv"`
	X         string `json:"x"`
	KeyID     string `json:"kid"`
	Use       string `json:"use"`
	Algorithm string `json:"alg"`
	Agent     string `json:"agent_id"`
	NotBefore int64  `json:"nbf"` // seconds since 1970
	Expires   int64  `json:"exp"`
}

// JWK returns the key in the form of RFC 7517, with its validity.
func (k Key) JWK() JWK {
	return JWK{"OKP", "Ed25519", encode(k.Public), k.ID, "sig", "EdDSA", k.Agent, k.Created.Unix(), k.Expires.Unix()}
}

// signingKey returns the current signing key of an agent. It creates a key if the agent has no key,
// or if its key ends soon.
func (s *Service) signingKey(ctx context.Context, agent string) (Key, ed25519.PrivateKey, error) {
	var key Key
	err := s.opts.Database.View(ctx, func(tx database.Tx) (err error) {
		key, err = newest(ctx, tx, agent, s.now())
		return err
	})
	if errors.Is(err, errNoKey) {
		key, err = s.makeKey(ctx, agent)
	}
	if err != nil {
		return Key{}, nil, err
	}
	private, err := s.unseal(key)
	return key, private, err
}

var errNoKey = errors.New("the agent has no key that it can sign with")

func newest(ctx context.Context, tx database.Tx, agent string, now time.Time) (Key, error) {
	keys, err := keysOf(
		ctx, tx, `WHERE agent = ? AND revoked = 0 AND sealed IS NOT NULL AND expires > ? ORDER BY created DESC, id `+
			`LIMIT 1`,
		agent, now.Add(renewBefore).Unix())
	if err != nil {
		return Key{}, err
	}
	if len(keys) == 0 {
		return Key{}, errNoKey
	}
	return keys[0], nil
}

// makeKey creates a key, unless another request has created one in the meantime.
func (s *Service) makeKey(ctx context.Context, agent string) (Key, error) {
	key, err := s.newKey(agent)
	if err != nil {
		return key, err
	}
	err = s.opts.Database.Update(ctx, func(tx database.Tx) error {
		there, err := newest(ctx, tx, agent, s.now())
		if err == nil {
			key = there
			return nil
		}
		if !errors.Is(err, errNoKey) {
			return err
		}
		return key.insert(ctx, tx)
	})
	return key, err
}

func (s *Service) newKey(agent string) (Key, error) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return Key{}, fmt.Errorf("making a key: %w", err)
	}
	now := s.now()
	key := Key{ID: thumbprint(public), Agent: agent, Public: public, Created: now, Expires: now.Add(keyLife)}
	key.sealed, err = agekey.Seal(s.opts.Identity.Recipient(), private.Seed())
	return key, err
}

func (k Key) insert(ctx context.Context, tx database.Tx) error {
	_, err := tx.ExecContext(ctx, `INSERT INTO agent_key VALUES (?, ?, ?, ?, ?, ?, 0)`, k.ID, k.Agent, []byte(k.Public),
		k.sealed, k.Created.Unix(), k.Expires.Unix())
	return err
}

func (s *Service) unseal(key Key) (ed25519.PrivateKey, error) {
	damaged := fmt.Errorf("the stored key %q is damaged", key.ID)
	seed, err := agekey.Open(key.sealed, s.opts.Identity)
	if err != nil || len(seed) != ed25519.SeedSize {
		return nil, damaged
	}
	private := ed25519.NewKeyFromSeed(seed)
	if !key.Public.Equal(private.Public()) { // it was moved from another row
		return nil, damaged
	}
	return private, nil
}

// Rotate creates a new key for an agent. Signatures of its other keys stay valid until these end.
func (s *Service) Rotate(ctx context.Context, agent, by string) (Key, error) {
	if _, err := s.registered(ctx, agent); err != nil {
		return Key{}, err
	}
	key, err := s.newKey(agent)
	if err != nil {
		return key, err
	}
	if err := s.record(ctx, by, fmt.Sprintf("agent %s has a new signing key %s", agent, key.ID)); err != nil {
		return key, err
	}
	err = s.opts.Database.Update(ctx, func(tx database.Tx) error {
		// The newest key signs, even if two are created within one second.
		if _, err := tx.ExecContext(ctx, `UPDATE agent_key SET created = created - 1 WHERE agent = ? AND created >= ?`,
			agent, key.Created.Unix()); err != nil {
			return err
		}
		return key.insert(ctx, tx)
	})
	return key, err
}

// Revoke immediately invalidates everything that a key of an agent has signed.
func (s *Service) Revoke(ctx context.Context, agent, keyID, by string) error {
	if err := s.record(ctx, by, fmt.Sprintf("agent %s: signing key %s revoked", agent, keyID)); err != nil {
		return err
	}
	revoked, err := s.opts.Database.Change(ctx, `UPDATE agent_key SET revoked = ? WHERE agent = ? AND id = ? AND
		revoked = 0`, s.now().Unix(), agent, keyID)
	if err == nil && !revoked {
		err = &Refusal{fmt.Sprintf("agent %s has no such key that is in use", agent)}
	}
	return err
}
