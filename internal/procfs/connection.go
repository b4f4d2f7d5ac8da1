package procfs

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"strings"
)

// IsOwnConnection reports whether the other end of a TCP connection over the IPv4 loopback interface is a socket of the
// user of this process or of root, as the kernel lists it. remote and local are the addresses of the connection as this
// process sees it. It returns false if the socket is not listed.
func IsOwnConnection(remote, local string) bool {
	from, err := netip.ParseAddrPort(remote)
	to, toErr := netip.ParseAddrPort(local)
	if err != nil || toErr != nil || !from.Addr().Unmap().Is4() || !to.Addr().Unmap().Is4() {
		return false
	}
	uid, ok := ownerOfSocket("/proc/self/net/tcp", from, to)
	return ok && (uid == os.Getuid() || uid == 0)
}

// ownerOfSocket returns the user ID of the socket that is bound to from and connected to, in a table in the format of
// proc_pid_net(5).
func ownerOfSocket(table string, from, to netip.AddrPort) (uid int, ok bool) {
	file, err := os.Open(table)
	if err != nil {
		return 0, false
	}
	defer file.Close()
	wanted, peer := tableAddress(from), tableAddress(to)
	for lines := bufio.NewScanner(file); lines.Scan(); {
		// sl, local_address, rem_address, st, queues, timer, retransmissions, uid
		fields := strings.Fields(lines.Text())
		if len(fields) < 8 || fields[1] != wanted || fields[2] != peer {
			continue
		}
		uid, err := strconv.Atoi(fields[7])
		return uid, err == nil
	}
	return 0, false
}

// tableAddress writes an IPv4 address as the kernel does: the bytes of the address as a number of this machine.
func tableAddress(a netip.AddrPort) string {
	raw := a.Addr().Unmap().As4()
	return fmt.Sprintf("%08X:%04X", binary.NativeEndian.Uint32(raw[:]), a.Port())
}
