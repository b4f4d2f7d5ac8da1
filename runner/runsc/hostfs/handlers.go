package hostfs

import (
	"syscall"

	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/lisafs"
)

// handlers returns the requests that are answered. Sockets, devices, FIFOs and extended attributes are not supported.
func handlers() []lisafs.RPCHandler {
	answered := map[lisafs.MID]lisafs.RPCHandler{
		lisafs.Error: lisafs.ErrorHandler, lisafs.Mount: lisafs.MountHandler, lisafs.FStat: lisafs.FStatHandler,
		lisafs.SetStat: lisafs.SetStatHandler, lisafs.Walk: lisafs.WalkHandler, lisafs.WalkStat: lisafs.WalkStatHandler,
		lisafs.Close: lisafs.CloseHandler, lisafs.FSync: lisafs.FSyncHandler, lisafs.PWrite: lisafs.PWriteHandler,
		lisafs.PRead: lisafs.PReadHandler, lisafs.MkdirAt: lisafs.MkdirAtHandler,
		lisafs.SymlinkAt: lisafs.SymlinkAtHandler,
		lisafs.LinkAt:    lisafs.LinkAtHandler, lisafs.FStatFS: lisafs.FStatFSHandler,
		lisafs.FAllocate: lisafs.FAllocateHandler, lisafs.ReadLinkAt: lisafs.ReadLinkAtHandler,
		lisafs.UnlinkAt: lisafs.UnlinkAtHandler, lisafs.RenameAt: lisafs.RenameAtHandler,
		lisafs.RenameAt2: lisafs.RenameAt2Handler, lisafs.Getdents64: lisafs.Getdents64Handler,
		// These hand over descriptors.
		lisafs.Channel: unshared(lisafs.ChannelHandler), lisafs.OpenAt: unshared(lisafs.OpenAtHandler),
		lisafs.OpenCreateAt: unshared(lisafs.OpenCreateAtHandler),
	}
	all := make([]lisafs.RPCHandler, lisafs.RenameAt2+1)
	for id, handler := range answered {
		all[id] = handler // the others are nil: EOPNOTSUPP
	}
	return all
}

// unshared has the descriptors that a handler hands over closed in child processes. gVisor duplicates them without
// O_CLOEXEC, because its file server has no children; here the kernel of another sandbox would inherit them. No process
// is forked until they are marked.
func unshared(next lisafs.RPCHandler) lisafs.RPCHandler {
	return func(c *lisafs.Connection, comm lisafs.Communicator, size uint32) (uint32, error) {
		syscall.ForkLock.RLock()
		defer syscall.ForkLock.RUnlock()
		return next(c, marking{comm}, size)
	}
}

// marking marks the descriptors that are handed over.
type marking struct{ lisafs.Communicator }

// DonateFD marks fd and hands it over.
func (m marking) DonateFD(fd int) {
	unix.CloseOnExec(fd)
	m.Communicator.DonateFD(fd)
}
