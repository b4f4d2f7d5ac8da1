package approval

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/airlock-mcp/airlock/internal/procfs"
)

// process is the information in /proc about a process (proc(5)).
type process struct {
	pid, parent int
	group       int // its process group
	session     int // its session in the sense of setsid(2)
	terminal    int // the device number of its controlling terminal; 0 for none
	foreground  int // the foreground process group of its terminal
	started     uint64
	name        string
	user        int    // real user ID
	tracer      int    // the process that traces it; 0 for none
	cgroup      string // its control groups
	fixed       string // those that this user cannot move a process into
	isTerminal  bool   // it is a terminal program installed by the machine's owner
}

// maxAncestors is the maximum number of ancestors that are read.
const maxAncestors = 1000

// readProcess reads the state of a process.
func readProcess(pid int) (process, error) {
	at := filepath.Join("/proc", strconv.Itoa(pid))
	stat, err := os.ReadFile(filepath.Join(at, "stat"))
	if errors.Is(err, syscall.ESRCH) { // it ended after its file was opened
		err = os.ErrNotExist
	}
	if err != nil {
		return process{}, err
	}
	p, err := parseStat(pid, stat)
	if err != nil {
		return process{}, err
	}
	status, err := os.ReadFile(filepath.Join(at, "status"))
	if err != nil {
		return process{}, err
	}
	p.user, p.tracer = -1, 0
	for line := range strings.Lines(string(status)) {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		switch fields[0] {
		case "Uid:":
			p.user, err = strconv.Atoi(fields[1])
		case "TracerPid:":
			p.tracer, err = strconv.Atoi(fields[1])
		}
		if err != nil {
			return process{}, fmt.Errorf("the status of process %d cannot be read: %w", pid, err)
		}
	}
	cgroup, err := os.ReadFile(filepath.Join(at, "cgroup"))
	if err != nil && !errors.Is(err, os.ErrNotExist) { // without control groups in the kernel, the file does not exist
		return process{}, err
	}
	p.cgroup, p.fixed = string(cgroup), fixedGroups(string(cgroup))
	p.isTerminal = terminalPrograms.MatchString(p.name) && isOfRoot(filepath.Join(at, "exe"))
	return p, nil
}

// parseStat parses /proc/PID/stat. The program's name may contain any character, including closing
// parentheses, so the fields are counted from the last one.
func parseStat(pid int, stat []byte) (process, error) {
	open, end := bytes.IndexByte(stat, '('), bytes.LastIndexByte(stat, ')')
	fields := []string{}
	if open >= 0 && end > open {
		fields = strings.Fields(string(stat[end+1:]))
	}
	if len(fields) < 20 {
		return process{}, fmt.Errorf("the state of process %d cannot be read", pid)
	}
	p := process{pid: pid, name: string(stat[open+1 : end])}
	for field, to := range map[int]*int{1: &p.parent, 2: &p.group, 3: &p.session, 4: &p.terminal, 5: &p.foreground} {
		n, err := strconv.Atoi(fields[field])
		if err != nil {
			return process{}, fmt.Errorf("the state of process %d cannot be read: %w", pid, err)
		}
		*to = n
	}
	started, err := strconv.ParseUint(fields[19], 10, 64)
	if err != nil {
		return process{}, fmt.Errorf("the state of process %d cannot be read: %w", pid, err)
	}
	p.started = started
	return p, nil
}

// ancestry returns a process and all its visible ancestors, the process itself first. The first
// process of the machine or container is not included, because it is an ancestor of all processes.
func ancestry(pid int) ([]process, error) {
	var line []process
	for range maxAncestors {
		if pid <= 1 {
			return line, nil
		}
		p, err := readProcess(pid)
		if err != nil {
			return nil, err
		}
		line = append(line, p)
		pid = p.parent
	}
	return nil, fmt.Errorf("a process has more than %d ancestors", maxAncestors)
}

// isPTY reports whether a terminal is a pseudo-terminal, whose other end is held by a program, and
// returns its index. Other terminals are consoles and serial lines.
func isPTY(terminal int) (index int, ok bool) {
	// As in new_encode_dev of the kernel: 12 bits of major, 20 of minor.
	device := uint64(uint32(terminal))
	major := (device >> 8) & 0xfff
	minor := (device & 0xff) | ((device >> 12) & 0xfff00)
	const first, last = 136, 143 // UNIX98_PTY_SLAVE_MAJOR and the following majors
	if major < first || major > last {
		return 0, false
	}
	return int((major-first)<<20 | minor), true
}

// holders returns the visible processes that hold the other end of a pseudo-terminal.
func holders(index int) ([]int, error) {
	pids, err := procfs.PIDs()
	return slices.DeleteFunc(pids, func(pid int) bool { return !holdsPTY(pid, index) }), err
}

// holdsPTY reports whether a process has opened the controlling end of a pseudo-terminal. It
// returns false for a process that cannot be inspected.
func holdsPTY(pid, index int) bool {
	at := filepath.Join("/proc", strconv.Itoa(pid))
	descriptors, err := os.ReadDir(filepath.Join(at, "fd"))
	if err != nil {
		return false
	}
	want := []byte("tty-index:\t" + strconv.Itoa(index))
	return slices.ContainsFunc(descriptors, func(d os.DirEntry) bool {
		target, err := os.Readlink(filepath.Join(at, "fd", d.Name()))
		if err != nil || !strings.HasSuffix(target, "/ptmx") {
			return false
		}
		info, err := os.ReadFile(filepath.Join(at, "fdinfo", d.Name()))
		return err == nil && slices.ContainsFunc(bytes.Split(info, []byte("\n")), func(line []byte) bool {
			return bytes.Equal(bytes.TrimSpace(line), want)
		})
	})
}

// peer is the process at the other end of a unix socket.
type peer struct {
	pid, user int
	conn      syscall.Conn
}

// lives reports whether the process that connected still exists, so that its process ID has not
// been reused.
func (p peer) lives() bool { return procfs.PeerLives(p.conn) }
