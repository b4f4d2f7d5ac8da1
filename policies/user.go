package policies

import (
	"github.com/cedar-policy/cedar-go"

	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/strictjson"
)

// userEntity returns the entity of a principal, which is in the groups that are stated about it. A claim that Cedar
// cannot hold exactly fails every comparison, which denies.
func userEntity(uid cedar.EntityUID, facts caller.Facts) cedar.Entity {
	groups, parents := make([]cedar.Value, len(facts.Groups)), make([]cedar.EntityUID, len(facts.Groups))
	for i, group := range facts.Groups {
		groups[i], parents[i] = cedar.String(group), cedar.NewEntityUID(typeGroup, cedar.String(group))
	}
	claims := cedar.RecordMap{}
	c := converter{left: maxSetSteps}
	for name, raw := range facts.Claims {
		claim, err := strictjson.Value(raw)
		if err != nil { // never happens: it was parsed before
			claim = nil
		}
		claims[cedar.String(name)], _ = c.value(claim, anything())
	}
	attributes := cedar.RecordMap{"name": uid.ID, "groups": cedar.NewSet(groups...), "claims": cedar.NewRecord(claims)}
	return cedar.Entity{UID: uid, Parents: cedar.NewEntityUIDSet(parents...), Attributes: cedar.NewRecord(attributes)}
}
