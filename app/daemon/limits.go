package daemon

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/airlock-mcp/airlock/app/config"
)

// limits bound what clients can take over HTTP. A message's size is bounded by who
// reads it.
type limits struct {
	connections int // at one time
	requests    int // at one time, open streams included; more are answered "busy"
	header      int // bytes

	headerTime time.Duration // to send the header
	bodyTime   time.Duration // to send the body
	idleTime   time.Duration // between two requests of one connection
	readTime   time.Duration // to take in writePart of an answer
	answerTime time.Duration // to take in what is left when the daemon ends
}

func defaultLimits() limits {
	return limits{
		connections: mostConnections(), requests: config.MaxRequests, header: 32 << 10,
		headerTime: 10 * time.Second, bodyTime: time.Minute, idleTime: 2 * time.Minute, readTime: 30 * time.Second, answerTime: 5 * time.Second,
	}
}

// ownFiles is how many of the files that the process may have open are left to
// sandboxes, servers and the state at the least.
const ownFiles = 384

// mostConnections is how many connections there may be: 20,000, but no more than
// three quarters of the files that the process may have open, and ownFiles less than all. Go
// has raised the limit as far as it goes when the process began.
func mostConnections() int {
	const most = 20_000
	var files unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &files); err != nil {
		return most
	}
	return int(min(most, files.Cur/4*3, max(files.Cur, ownFiles+16)-ownFiles))
}
