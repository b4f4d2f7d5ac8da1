package runsc

import (
	"fmt"
	"hash/fnv"
	"os"
	"strings"
)

// The users that root gives to sandboxes: from a range in which no distribution
// and no container manager allocates (systemd's documentation UIDS-GIDS lists
// who uses what).
const (
	firstUser = 1_900_000_000
	users     = 1 << 26
)

// user is a user and a group of the host.
type user struct{ uid, gid uint32 }

// hostUser is whom a sandbox's processes are on the host. An ordinary user can
// only offer itself. Root gives each sandbox a user of its own, where its user
// namespace has such users, and else nobody.
func hostUser(id string) user {
	if uid := os.Geteuid(); uid != 0 {
		return user{uint32(uid), uint32(os.Getegid())}
	}
	if !mapped(firstUser + users - 1) {
		return user{nobody, nobody}
	}
	h := fnv.New32a()
	h.Write([]byte(id)) // never fails
	n := uint32(firstUser) + h.Sum32()%users
	return user{n, n}
}

// mapped reports whether a user and a group with this number exist in the user
// namespace of Airlock (user_namespaces(7)).
func mapped(id uint64) bool {
	for _, file := range []string{"/proc/self/uid_map", "/proc/self/gid_map"} {
		data, err := os.ReadFile(file)
		if err != nil || !maps(string(data), id) {
			return false
		}
	}
	return true
}

func maps(text string, id uint64) bool {
	for line := range strings.Lines(text) {
		var first, outside, count uint64
		if _, err := fmt.Sscan(line, &first, &outside, &count); err == nil && first <= id && id < first+count {
			return true
		}
	}
	return false
}
