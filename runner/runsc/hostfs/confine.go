package hostfs

import (
	"os"
	"runtime"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/lisafs"
)

// Rights that Landlock decides about, by the version of its interface that has them all. Changing a link to another
// directory is refused by version 1 and can be permitted since version 2 (Linux 5.19).
const (
	accessAll   = unix.LANDLOCK_ACCESS_FS_REFER<<1 - 1
	accessRead  = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	accessNever = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_MAKE_CHAR |
		unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK | unix.LANDLOCK_ACCESS_FS_MAKE_SOCK | unix.LANDLOCK_ACCESS_FS_MAKE_FIFO
	minABI = 2
)

// Confined reports whether the kernel can confine the threads that serve a directory to that directory.
func Confined() bool { return landlockABI() >= minABI }

// landlockABI returns the version of the kernel's interface, or 0 without Landlock.
func landlockABI() int {
	version, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(version)
}

// confinement limits the threads that handle the requests of one sandbox to its directory, with Landlock. gVisor's file
// server has no other access to files by path, so an error in it does not open other files of this process's user.
type confinement struct {
	ruleset int // -1 if the kernel has no Landlock

	mu      sync.Mutex
	entered map[lisafs.Communicator]bool
}

// confine returns the confinement to the open directory root. The caller must close it when no request is handled any
// more.
func confine(root int, writable bool) (*confinement, error) {
	c := &confinement{ruleset: -1, entered: map[lisafs.Communicator]bool{}}
	abi := landlockABI()
	if abi < minABI {
		return c, nil
	}
	rules := unix.LandlockRulesetAttr{Handled_access_fs: accessAll}
	if abi >= 3 {
		rules.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_TRUNCATE
	}
	if abi >= 4 {
		rules.Handled_access_net = unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
	}
	if abi >= 5 {
		rules.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	}
	granted := uint64(accessRead)
	if writable {
		granted = rules.Handled_access_fs &^ (accessNever | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV)
	}
	ruleset, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&rules)),
		unsafe.Sizeof(rules), 0)
	if errno != 0 {
		return nil, os.NewSyscallError("landlock_create_ruleset", errno)
	}
	c.ruleset = int(ruleset)
	below := unix.LandlockPathBeneathAttr{Allowed_access: granted, Parent_fd: int32(root)}
	if _, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, ruleset, unix.LANDLOCK_RULE_PATH_BENEATH,
		uintptr(unsafe.Pointer(&below)), 0, 0, 0); errno != 0 {
		c.close()
		return nil, os.NewSyscallError("landlock_add_rule", errno)
	}
	return c, nil
}

// wrap has handlers called in confined threads only. gVisor serves each communicator in one goroutine that does nothing
// else. The first request locks it to its thread, which ends with the goroutine. Go starts no thread from a locked one,
// and this package no process, so nothing inherits the rules.
func (c *confinement) wrap(handlers []lisafs.RPCHandler) {
	if c.ruleset < 0 {
		return
	}
	for id, next := range handlers {
		if next == nil {
			continue
		}
		handlers[id] = func(conn *lisafs.Connection, comm lisafs.Communicator, size uint32) (uint32, error) {
			if err := c.enter(comm); err != nil {
				return 0, err
			}
			return next(conn, comm, size)
		}
	}
}

// enter confines the goroutine that serves comm, once.
func (c *confinement) enter(comm lisafs.Communicator) error {
	c.mu.Lock()
	entered := c.entered[comm]
	c.mu.Unlock()
	if entered {
		return nil
	}
	runtime.LockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(c.ruleset), 0, 0); errno != 0 {
		return errno
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.entered[comm] = true
	return nil
}

// close closes the rules. Threads that entered stay confined.
func (c *confinement) close() {
	if c.ruleset >= 0 {
		_ = unix.Close(c.ruleset) // nothing is written to it
	}
}
