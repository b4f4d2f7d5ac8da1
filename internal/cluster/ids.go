package cluster

import (
	"context"
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
	return rest + n.keys.tag(n.name, rest)
}

// Marker returns Mark, or nil without a cluster.
func (n *Node) Marker() func(id string) string {
	if n == nil {
		return nil
	}
	return n.Mark
}

// Owner returns the name of the node that has what an ID names. It is empty for an ID of another cluster, and for all
// other texts.
func (n *Node) Owner(ctx context.Context, id string) string {
	if n == nil {
		return ""
	}
	m, _ := n.owner(ctx, id)
	return m.name
}

// rereadAfter is how long the nodes are not read again for an ID that none of them has made. A node makes IDs when it
// serves, which is later.
const rereadAfter = 100 * time.Millisecond

// owner returns the node that has what an ID names: the one that has made the ID, or has taken the run from that. Of
// this node, only the name is set.
func (n *Node) owner(ctx context.Context, id string) (member, bool) {
	m, found := n.maker(ctx, id)
	switch name := n.movedTo(ctx, id); name {
	case "", m.name:
		return m, found
	case n.name:
		return member{name: n.name}, true
	default:
		if to, known := n.members.named(name); known {
			return to, true
		}
		n.readMembers(ctx, time.Now().Add(-rereadAfter))
		to, _ := n.members.named(name)
		return to, true
	}
}

// maker returns the node that has made an ID. Of this node, only the name is set.
func (n *Node) maker(ctx context.Context, id string) (member, bool) {
	if len(id) <= tagLength {
		return member{}, false
	}
	rest, tag := id[:len(id)-tagLength], id[len(id)-tagLength:]
	if strings.Trim(tag, "0123456789abcdef") != "" {
		return member{}, false
	}
	if n.keys.isTag(tag, n.name, rest) {
		return member{name: n.name}, true
	}
	fresh := time.Now().Add(-rereadAfter)
	for range 2 {
		for _, m := range n.members.list() {
			if n.keys.isTag(tag, m.name, rest) {
				return m, true
			}
		}
		n.readMembers(ctx, fresh)
	}
	return member{}, false
}

// Had returns the nodes that may have what an ID names in their logs: the one that has made the ID, and the one that
// has taken the run from it. isLost reports that the latter does not answer, or is this one.
func (n *Node) Had(ctx context.Context, id string) (names []string, isLost bool) {
	if n == nil {
		return nil, false
	}
	by, made := n.maker(ctx, id)
	if made {
		names = append(names, by.name)
	}
	last, found := n.owner(ctx, id)
	if found && last.name != by.name {
		names = append(names, last.name)
	}
	return names, found && !last.alive
}

// Reference returns a text that Forward takes for an ID of a node.
func (n *Node) Reference(name string) string { return "node" + n.keys.tag(name, "node") }
