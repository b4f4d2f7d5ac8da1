package hostfs

import (
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/lisafs"
)

// maxObserved is how many inodes of a directory have a known path at the same time.
const maxObserved = 1 << 16

// observer reports the files that a sandbox opens and changes, also those that it may not. Its methods are safe for
// concurrent use.
type observer struct {
	directory string
	seen      func(path string, write bool)

	mu    sync.Mutex
	paths map[lisafs.FDID]string
}

// observe wraps the handlers of requests that open or change a file.
func (o *observer) observe(all []lisafs.RPCHandler) {
	wrap := func(id lisafs.MID, before func(payload []byte) (after func(answer []byte))) {
		next := all[id]
		all[id] = func(c *lisafs.Connection, comm lisafs.Communicator, size uint32) (uint32, error) {
			after := before(comm.PayloadBuf(size))
			n, err := next(c, comm, size)
			if err == nil && after != nil {
				after(comm.PayloadBuf(n))
			}
			return n, err
		}
	}
	wrap(lisafs.Mount, func([]byte) func([]byte) {
		return func(answer []byte) {
			var root lisafs.MountResp
			if _, ok := root.CheckedUnmarshal(answer); ok {
				o.name(root.Root.ControlFD, o.directory)
			}
		}
	})
	wrap(lisafs.Walk, o.walk)
	wrap(lisafs.Close, func(payload []byte) func([]byte) {
		var request lisafs.CloseReq
		if _, ok := request.CheckedUnmarshal(payload); ok {
			o.forget(request.FDs)
		}
		return nil
	})
	wrap(lisafs.OpenAt, func(payload []byte) func([]byte) {
		var request lisafs.OpenAtReq
		if _, ok := request.CheckedUnmarshal(payload); ok {
			o.report(request.FD, "", request.Flags&(unix.O_ACCMODE|unix.O_TRUNC) != unix.O_RDONLY)
		}
		return nil
	})
	wrap(lisafs.OpenCreateAt, func(payload []byte) func([]byte) {
		var request lisafs.OpenCreateAtReq
		if _, ok := request.CheckedUnmarshal(payload); !ok {
			return nil
		}
		path := o.report(request.DirFD, string(request.Name), true)
		return func(answer []byte) {
			var made lisafs.OpenCreateAtResp
			if _, ok := made.CheckedUnmarshal(answer); ok {
				o.name(made.Child.ControlFD, path)
			}
		}
	})
	wrap(lisafs.MkdirAt, func(payload []byte) func([]byte) {
		var request lisafs.MkdirAtReq
		if _, ok := request.CheckedUnmarshal(payload); !ok {
			return nil
		}
		path := o.report(request.DirFD, string(request.Name), true)
		return func(answer []byte) {
			var made lisafs.MkdirAtResp
			if _, ok := made.CheckedUnmarshal(answer); ok {
				o.name(made.ChildDir.ControlFD, path)
			}
		}
	})
	wrap(lisafs.UnlinkAt, func(payload []byte) func([]byte) {
		var request lisafs.UnlinkAtReq
		if _, ok := request.CheckedUnmarshal(payload); ok {
			o.report(request.DirFD, string(request.Name), true)
		}
		return nil
	})
}

// walk gives the inodes on a path their names.
func (o *observer) walk(payload []byte) func([]byte) {
	var request lisafs.WalkReq
	if _, ok := request.CheckedUnmarshal(payload); !ok {
		return nil
	}
	path, known := o.path(request.DirFD)
	return func(answer []byte) {
		var found lisafs.WalkResp
		if _, ok := found.CheckedUnmarshal(answer); !ok || !known || len(found.Inodes) > len(request.Path) {
			return
		}
		for i, inode := range found.Inodes {
			path = filepath.Join(path, string(request.Path[i]))
			o.name(inode.ControlFD, path)
		}
	}
}

func (o *observer) path(fd lisafs.FDID) (string, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	path, known := o.paths[fd]
	return path, known
}

func (o *observer) name(fd lisafs.FDID, path string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.paths) < maxObserved && path != "" {
		o.paths[fd] = path
	}
}

func (o *observer) forget(fds []lisafs.FDID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, fd := range fds {
		delete(o.paths, fd)
	}
}

// report reports a file by its directory and name, or by itself, and returns its path.
func (o *observer) report(fd lisafs.FDID, name string, write bool) string {
	path, known := o.path(fd)
	if !known {
		return ""
	}
	path = filepath.Join(path, name)
	o.seen(path, write)
	return path
}
