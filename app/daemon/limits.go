package daemon

import (
	"time"

	"golang.org/x/sys/unix"
)

// limits bounds the resources of HTTP clients. The handlers bound the size of messages.
type limits struct {
	connections int // concurrent
	header      int // bytes

	headerTime time.Duration // to send the header
	bodyTime   time.Duration // to send the body
	idleTime   time.Duration // between two requests of one connection
	silentTime time.Duration // without a frame of HTTP/2; then the client must answer a ping within headerTime
	readTime   time.Duration // to read writePart bytes of an answer
	answerTime time.Duration // to answer and read remaining answers at shutdown
}

func defaultLimits() limits {
	return limits{
		connections: mostConnections(), header: 32 << 10,
		headerTime: 10 * time.Second, bodyTime: time.Minute, idleTime: 2 * time.Minute, silentTime: 30 * time.Second,
		readTime: 30 * time.Second, answerTime: 5 * time.Second,
	}
}

// ownFiles is the minimum number of file descriptors that are reserved for sandboxes, servers
// and the state.
const ownFiles = 384

// mostConnections returns the maximum number of connections: the minimum of 20,000, three
// quarters of the limit of open files, and that limit less ownFiles. At process start, Go
// raises the soft limit to the hard limit.
func mostConnections() int {
	const most = 20_000
	var files unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &files); err != nil {
		return most
	}
	return int(min(most, files.Cur/4*3, max(files.Cur, ownFiles+16)-ownFiles))
}
