package store

import (
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// The entries of a POSIX access control list, as in the extended attribute system.posix_acl_access of Linux: a version,
// then tag, permissions and ID of each entry.
const (
	aclHeader, aclEntry = 4, 8
	aclUser             = 0x02
	aclGroupOwner       = 0x04
	aclGroup            = 0x08
	aclWrite            = 2
)

// writers are the users and groups that may write to a file, beside its owner. They are exact if the group bits of its
// mode permit to write: these bits are the mask of a list.
type writers struct{ users, groups []uint32 }

// writersOf returns who may write to the file at path, whose group is gid and whose group may write by the mode. It
// does not follow a link.
func writersOf(path string, gid uint32) (writers, error) {
	list := make([]byte, 64<<10) // the maximum of an extended attribute
	n, err := unix.Lgetxattr(path, "system.posix_acl_access", list)
	if errors.Is(err, unix.ENODATA) || errors.Is(err, unix.ENOTSUP) {
		return writers{groups: []uint32{gid}}, nil // without a list
	}
	if err != nil {
		return writers{}, fmt.Errorf("reading the access control list of %q: %w", path, err)
	}
	return writersIn(list[:n], gid), nil
}

// writersIn reads a list. Of a list that is cut off, the complete entries count.
func writersIn(list []byte, gid uint32) (w writers) {
	for rest := list[min(len(list), aclHeader):]; len(rest) >= aclEntry; rest = rest[aclEntry:] {
		if binary.LittleEndian.Uint16(rest[2:])&aclWrite == 0 {
			continue
		}
		id := binary.LittleEndian.Uint32(rest[4:])
		switch binary.LittleEndian.Uint16(rest) {
		case aclUser:
			w.users = append(w.users, id)
		case aclGroup:
			w.groups = append(w.groups, id)
		case aclGroupOwner:
			w.groups = append(w.groups, gid)
		}
	}
	return w
}
