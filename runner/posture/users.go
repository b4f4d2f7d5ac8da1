package posture

import (
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"strings"
)

// Nobody is the user without rights of every system.
const Nobody = 65534

// The users that root gives to sandboxes: from a range in which no distribution
// and no container manager allocates (systemd's documentation UIDS-GIDS lists
// IDs and their users).
const (
	firstUser = 1_900_000_000
	users     = 1 << 26
)

// User is a user and a group of the host.
type User struct{ UID, GID uint32 }

// Users are the users and groups that a user namespace has (user_namespaces(7)).
type Users struct{ uids, gids []span }

// span is one line of a map: numbers inside from first, and outside from outside.
type span struct{ first, outside, count uint64 }

// UsersOf reads the user ID mappings of the user namespace of a process. Host IDs are
// those of the calling process's namespace.
func UsersOf(pid int) (Users, error) {
	uids, err := os.ReadFile(proc(pid, "uid_map"))
	if err != nil {
		return Users{}, err
	}
	gids, err := os.ReadFile(proc(pid, "gid_map"))
	if err != nil {
		return Users{}, err
	}
	return Users{parseMap(string(uids)), parseMap(string(gids))}, nil
}

// Pick returns the user for a sandbox's processes: a dedicated user if the namespace has
// a range for them, or nobody (65534). It returns an error if root is the only user.
func (u Users) Pick(sandbox string) (User, error) {
	if find(u.uids, firstUser+users-1) != nil && find(u.gids, firstUser+users-1) != nil {
		h := fnv.New32a()
		h.Write([]byte(sandbox)) // never fails
		n := uint32(firstUser) + h.Sum32()%users
		return User{n, n}, nil
	}
	if find(u.uids, Nobody) != nil && find(u.gids, Nobody) != nil {
		return User{Nobody, Nobody}, nil
	}
	return User{}, errors.New("the user namespace has no user but root")
}

// Outside returns who a user of the namespace is for this process.
func (u Users) Outside(inside User) User {
	return User{outside(u.uids, inside.UID), outside(u.gids, inside.GID)}
}

func outside(spans []span, id uint32) uint32 {
	if s := find(spans, uint64(id)); s != nil {
		return uint32(s.outside + uint64(id) - s.first)
	}
	return Nobody // as the kernel shows users that a namespace does not have
}

func find(spans []span, id uint64) *span {
	for i, s := range spans {
		if s.first <= id && id < s.first+s.count {
			return &spans[i]
		}
	}
	return nil
}

func parseMap(text string) []span {
	var all []span
	for line := range strings.Lines(text) {
		var s span
		if _, err := fmt.Sscan(line, &s.first, &s.outside, &s.count); err == nil {
			all = append(all, s)
		}
	}
	return all
}
