package audit

import "github.com/airlock-mcp/airlock/internal/caller"

// IdentityOf returns the identity of a caller for audit records.
func IdentityOf(c caller.Caller) Identity {
	return Identity{SessionID: c.Session, Principal: c.Principal, Issuer: c.Issuer, CallerKind: string(c.Kind),
		Profile: c.Profile}
}
