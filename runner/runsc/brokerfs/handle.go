package brokerfs

import (
	"math"

	"golang.org/x/sys/unix"
)

// The numbers of what the peer can name. They are the same for every sandbox, all
// the time: opening gives them out, and closing means nothing.
const (
	rootFD   = 1
	socketFD = 2
	listFD   = 3 // the directory, opened for reading
)

// statx is struct statx of statx(2), as the protocol carries it.
type statx struct {
	Mask, BlockSize               uint32
	Attributes                    uint64
	Links, UID, GID               uint32
	Mode, _                       uint16
	Inode, Size, Blocks, AttrMask uint64
	Accessed, Born, Changed, Mod  timestamp
	RdevMajor, RdevMinor          uint32
	DevMajor, DevMinor            uint32
}

type timestamp struct {
	Seconds int64
	Nanos   uint32
	_       int32
}

// inode is a descriptor and the attributes of its file.
type inode struct {
	FD   uint64
	Stat statx
}

// The two files. Both belong to root; every process in the sandbox can connect.
func root() inode { return inode{rootFD, stat(rootFD, unix.S_IFDIR|0o555, 2)} }
func node() inode { return inode{socketFD, stat(socketFD, unix.S_IFSOCK|0o666, 1)} }

func stat(ino uint64, mode uint16, links uint32) statx {
	return statx{Mask: unix.STATX_BASIC_STATS, BlockSize: 4096, Links: links, Mode: mode, Inode: ino, DevMinor: 1}
}

// find returns the file with the descriptor number fd.
func find(fd uint64) (inode, error) {
	switch fd {
	case rootFD, listFD:
		return root(), nil
	case socketFD:
		return node(), nil
	}
	return inode{}, unix.EBADF
}

// handle answers one request. It is called concurrently.
func (s *Server) handle(req message) message {
	answer, err := s.answer(req)
	if err != nil {
		return message{kind: kindError, payload: encode(uint32(errno(err)))}
	}
	answer.kind = req.kind
	return answer
}

func (s *Server) answer(req message) (message, error) {
	switch req.kind {
	case kindMount:
		return mount(), nil
	case kindChannel:
		return s.openChannel()
	case kindFStat:
		return fstat(req.payload)
	case kindWalk:
		return walk(req.payload)
	case kindWalkStat:
		return walkStat(req.payload)
	case kindOpenAt:
		return openAt(req.payload)
	case kindClose:
		return message{}, nil
	case kindFStatFS:
		return fstatfs(), nil
	case kindGetdents64:
		return getdents(req.payload)
	case kindConnect, kindConnectWithCreds: // the result is the same for every caller
		return s.connect(req.payload)
	}
	return message{}, unix.EOPNOTSUPP
}

// mount introduces the root, the longest message and the kinds of messages.
func mount() message {
	kinds := []uint16{
		kindError, kindMount, kindChannel, kindFStat, kindWalk, kindWalkStat, kindOpenAt, kindClose,
		kindFStatFS, kindConnect, kindGetdents64, kindConnectWithCreds,
	}
	return message{payload: encode(root(), uint32(maxMessage), uint16(len(kinds)), kinds)}
}

func fstat(payload []byte) (message, error) {
	var fd uint64
	if err := decode(payload, &fd); err != nil {
		return message{}, err
	}
	file, err := find(fd)
	return message{payload: encode(file.Stat)}, err
}

// The results of a walk.
const (
	walked  = 0
	missing = 1
)

// walk follows names from a directory as far as they exist.
func walk(payload []byte) (message, error) {
	from, list, err := names(payload)
	if err != nil {
		return message{}, err
	}
	found := follow(from, list)
	status := uint8(walked)
	if len(found) < len(list) {
		status = missing
	}
	return message{payload: encode(status, uint16(len(found)), found)}, nil
}

func follow(from uint64, list []string) []inode {
	var found []inode
	for _, name := range list {
		if from != rootFD || name != SocketName {
			break
		}
		found = append(found, node())
		from = socketFD
	}
	return found
}

// walkStat is like walk but returns attributes instead of descriptors; an empty first
// name means the starting directory.
func walkStat(payload []byte) (message, error) {
	from, list, err := names(payload)
	if err != nil {
		return message{}, err
	}
	var stats []statx
	if len(list) > 0 && list[0] == "" {
		start, err := find(from)
		if err != nil {
			return message{}, err
		}
		stats, list = append(stats, start.Stat), list[1:]
	}
	for _, file := range follow(from, list) {
		stats = append(stats, file.Stat)
	}
	return message{payload: encode(uint16(len(stats)), stats)}, nil
}

// openAt opens the directory for listing, and nothing else.
func openAt(payload []byte) (message, error) {
	var req struct {
		FD       uint64
		Flags, _ uint32
	}
	if err := decode(payload, &req); err != nil {
		return message{}, err
	}
	switch {
	case req.FD == socketFD:
		return message{}, unix.ENXIO // as open(2) returns for a socket
	case req.FD != rootFD:
		return message{}, unix.EBADF
	case req.Flags&unix.O_ACCMODE != unix.O_RDONLY:
		return message{}, unix.EROFS
	}
	return message{payload: encode(uint64(listFD))}, nil
}

// getdents returns the whole directory. A negative count means "from the beginning", any
// other "the remaining entries", and none remain.
func getdents(payload []byte) (message, error) {
	var req struct {
		FD       uint64
		Count, _ int32
	}
	if err := decode(payload, &req); err != nil {
		return message{}, err
	}
	if req.FD != listFD {
		return message{}, unix.EBADF
	}
	if req.Count >= 0 {
		return message{payload: encode(uint16(0))}, nil
	}
	entry := encode(uint16(1), uint64(socketFD), uint32(1), uint32(0), uint64(1), uint8(unix.DT_SOCK),
		uint16(len(SocketName)), []byte(SocketName))
	return message{payload: entry}, nil
}

func fstatfs() message {
	return message{payload: encode(struct {
		Type                                                     uint64
		BlockSize                                                int64
		Blocks, BlocksFree, BlocksAvailable, Files, Free, MaxLen uint64
	}{Type: unix.TMPFS_MAGIC, BlockSize: 4096, Files: 2, MaxLen: math.MaxUint8})}
}
