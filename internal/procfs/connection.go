package procfs

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Connection is a TCP connection as the other end sees it: Remote is the address of this process.
type Connection struct{ Local, Remote netip.AddrPort }

// socketTables are the kernel's lists of TCP sockets (proc_pid_net(5)).
var socketTables = []string{"/proc/self/net/tcp", "/proc/self/net/tcp6"}

// socket is a row of such a table.
type socket struct {
	uid   int
	inode string
}

// IsOwnConnection reports whether the other end of a TCP connection over the loopback interface is a socket of the
// user of this process or of root, as the kernel lists it. remote and local are the addresses of the connection as this
// process sees it. It returns false if the socket is not listed.
func IsOwnConnection(remote, local string) bool {
	from, err := netip.ParseAddrPort(remote)
	to, toErr := netip.ParseAddrPort(local)
	if err != nil || toErr != nil {
		return false
	}
	for _, found := range sockets(socketTables, []Connection{{from, to}}) {
		return found.uid == os.Getuid() || found.uid == 0
	}
	return false
}

// Holders returns the processes that hold one of the connections, if the sockets belong to the user of this process.
// Processes that this process cannot inspect are not returned.
func Holders(of []Connection) ([]int, error) {
	wanted := map[string]bool{}
	for _, found := range sockets(socketTables, of) {
		if found.uid == os.Geteuid() {
			wanted["socket:["+found.inode+"]"] = true
		}
	}
	if len(wanted) == 0 {
		return nil, nil
	}
	pids, err := PIDs()
	return slices.DeleteFunc(pids, func(pid int) bool { return pid == os.Getpid() || !holds(pid, wanted) }), err
}

// holds reports whether a process has one of the files open.
func holds(pid int, wanted map[string]bool) bool {
	at := filepath.Join("/proc", strconv.Itoa(pid), "fd")
	descriptors, err := os.ReadDir(at)
	return err == nil && slices.ContainsFunc(descriptors, func(d os.DirEntry) bool {
		target, err := os.Readlink(filepath.Join(at, d.Name()))
		return err == nil && wanted[target]
	})
}

// sockets returns those of the connections that are in one of the tables.
func sockets(tables []string, of []Connection) map[Connection]socket {
	wanted := map[Connection]Connection{}
	for _, c := range of {
		wanted[Connection{unmapped(c.Local), unmapped(c.Remote)}] = c
	}
	found := map[Connection]socket{}
	for _, table := range tables {
		maps.Copy(found, listed(table, wanted))
	}
	return found
}

func listed(table string, wanted map[Connection]Connection) map[Connection]socket {
	found := map[Connection]socket{}
	file, err := os.Open(table)
	if err != nil {
		return nil
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		// sl, local_address, rem_address, st, queues, timer, retransmissions, uid, timeout, inode
		fields := strings.Fields(lines.Text())
		if len(fields) < 10 {
			continue
		}
		local, localErr := tableAddress(fields[1])
		remote, remoteErr := tableAddress(fields[2])
		uid, uidErr := strconv.Atoi(fields[7])
		if localErr != nil || remoteErr != nil || uidErr != nil {
			continue
		}
		if c, ok := wanted[Connection{local, remote}]; ok {
			found[c] = socket{uid, fields[9]}
		}
	}
	return found
}

// tableAddress parses an address of a table: words of four bytes, as numbers of this machine.
func tableAddress(text string) (netip.AddrPort, error) {
	host, port, _ := strings.Cut(text, ":")
	number, err := strconv.ParseUint(port, 16, 16)
	if err != nil {
		return netip.AddrPort{}, err
	}
	raw, err := hex.DecodeString(host)
	if err != nil || len(raw)%4 != 0 {
		return netip.AddrPort{}, fmt.Errorf("%q is not an address", text)
	}
	for word := range slices.Chunk(raw, 4) {
		binary.NativeEndian.PutUint32(word, binary.BigEndian.Uint32(word))
	}
	address, ok := netip.AddrFromSlice(raw)
	if !ok {
		return netip.AddrPort{}, fmt.Errorf("%q is not an address", text)
	}
	return netip.AddrPortFrom(address.Unmap(), uint16(number)), nil
}

func unmapped(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().Unmap().WithZone(""), a.Port())
}
