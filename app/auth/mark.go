package auth

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/airlock-mcp/airlock/app/config"
)

// mark is the mark of a credential for which the issuer vouches: what must still hold for the credential to be in
// force. It does not depend on the process that made it: agents, tokens and suspended runs outlive a restart.
type mark struct {
	gives   []string // digests: how the issuer identifies callers, and each right that the configuration gave
	begin   int64    // when the token was issued, or the person signed in, in seconds since 1970
	subject string   // a digest of the name of the caller
	signIn  string   // of a person; empty for an access token
	key     string   // the ID of the key that signed the token
}

// noSignIn is the sign-in of access tokens in the text of a mark.
const noSignIn = "-"

// String returns the mark as a credential has it.
func (m mark) String() string {
	signIn := m.signIn
	if signIn == "" {
		signIn = noSignIn
	}
	return fmt.Sprintf("%s %d %s %s %s", strings.Join(m.gives, ","), m.begin, m.subject, signIn, m.key)
}

// parseMark returns the mark in a text. Its key can contain spaces.
func parseMark(text string) (m mark, ok bool) {
	part := strings.SplitN(text, " ", 5)
	if len(part) != 5 {
		return mark{}, false
	}
	begin, err := strconv.ParseInt(part[1], 10, 64)
	return mark{strings.Split(part[0], ","), begin, part[2], strings.TrimPrefix(part[3], noSignIn), part[4]}, err == nil
}

// accepts reports whether the issuer still has the key of a mark, and still gives each right that it gave when the mark
// was made.
func (i *Issuer) accepts(ctx context.Context, m mark) bool {
	for _, one := range m.gives {
		if !i.gives[one] {
			return false
		}
	}
	return i.keys.has(ctx, m.key)
}

// identifies returns a digest of how the configuration identifies callers, and of all that can narrow what scopes and
// groups give: a profile is also that of a caller whose rights come from other scopes.
func (i *Issuer) identifies() string {
	c := i.config
	var profiles []string
	for of, all := range map[string][]config.Scope{ofTokens: i.scopes, ofPeople: i.groups()} {
		for _, given := range all {
			if given.Profile != "" {
				profiles = append(profiles, fmt.Sprintf("%s %q %q", of, given.Name, given.Profile))
			}
		}
	}
	slices.Sort(profiles)
	return digest(append([]string{c.Issuer, c.JWKS, c.Audience, c.GroupsClaim, c.SignIn.ClientID,
		fmt.Sprintf("%q", c.Claims)}, profiles...)...)
}

// typeDigest returns the digest of an accepted type of tokens.
func typeDigest(named string) string { return digest("type", strings.ToLower(named)) }

// The kinds of what gives rights: access tokens have them by their scopes, people by their groups.
const ofTokens, ofPeople = "scope", "group"

// groups returns the groups that have rights, and everyone.
func (i *Issuer) groups() []config.Scope {
	return append(slices.Clone(i.config.SignIn.Groups), i.config.SignIn.Everyone)
}

// rightDigests returns the digests of the rights that scopes or groups give.
func rightDigests(of string, given []config.Scope) (digests []string) {
	for _, one := range given {
		for _, right := range one.Rights {
			digests = append(digests, digest(of, one.Name, right))
		}
	}
	return digests
}

// digest returns a short digest of texts.
func digest(texts ...string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q", texts))
	return hex.EncodeToString(sum[:8])
}
