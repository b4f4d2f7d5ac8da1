package cluster

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"
)

// tagLength is the number of hex digits at the end of an ID that name its node.
const tagLength = 12

// Mark returns a random ID whose last twelve characters are replaced by a tag that names this node. Only processes with
// the key of the cluster can make tags or find the node that a tag names. Without a cluster, it returns id.
func (n *Node) Mark(id string) string {
	if n == nil {
		return id
	}
	rest := id[:len(id)-tagLength]
	return rest + n.tag(n.name, rest)
}

// Marker returns Mark, or nil without a cluster.
func (n *Node) Marker() func(id string) string {
	if n == nil {
		return nil
	}
	return n.Mark
}

// tag returns the tag of an ID that a node has made. The name and not the epoch identifies the node, because runs that
// wait for people continue in the next process of the node.
func (n *Node) tag(name, rest string) string {
	mac := hmac.New(sha256.New, n.key)
	mac.Write([]byte(name + "\x00" + rest)) // the name of a node has no zero byte
	return hex.EncodeToString(mac.Sum(nil))[:tagLength]
}

// owner returns the other node that has made an ID. It returns false for an ID of this node, of another cluster, and
// for all other texts.
func (n *Node) owner(ctx context.Context, id string) (member, bool) {
	if len(id) <= tagLength {
		return member{}, false
	}
	rest, tag := id[:len(id)-tagLength], id[len(id)-tagLength:]
	if strings.Trim(tag, "0123456789abcdef") != "" || tag == n.tag(n.name, rest) {
		return member{}, false
	}
	asked := time.Now()
	for range 2 {
		for _, m := range n.members.list() {
			if tag == n.tag(m.name, rest) {
				return m, true
			}
		}
		n.readMembers(ctx, asked) // the node may have joined a moment ago
	}
	return member{}, false
}
