package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// idle is connections that do nothing.
type idle struct{ conns []net.Conn }

// open opens connections, of which every other asks once. Where the system does not give
// this process so many, there are fewer.
func open(url string, n int) (*idle, error) {
	address := strings.TrimPrefix(url, "http://")
	i := &idle{}
	for len(i.conns) < n {
		conn, err := net.Dial("tcp", address)
		if errors.Is(err, syscall.EMFILE) {
			return i, nil
		}
		if err != nil {
			return i, errors.Join(err, i.close())
		}
		i.conns = append(i.conns, conn)
		if len(i.conns)%2 == 0 {
			continue
		}
		if _, err := io.WriteString(conn, "GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"); err != nil {
			return i, errors.Join(err, i.close())
		}
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil || res.StatusCode != http.StatusOK {
			return i, errors.Join(fmt.Errorf("connection %d: got %v, %w", len(i.conns), res, err), i.close())
		}
	}
	return i, nil
}

func (i *idle) close() error {
	var errs []error
	for _, conn := range i.conns {
		errs = append(errs, conn.Close())
	}
	return errors.Join(errs...)
}

// use is what a process has taken.
type use struct {
	memory    int64 // its proportional set, in bytes
	processor time.Duration
}

// useOf looks at a process; nothing for 0.
func useOf(pid int) (use, error) {
	if pid == 0 {
		return use{}, nil
	}
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return use{}, err
	}
	var u use
	for line := range strings.Lines(string(maps)) {
		var kilobytes int64
		if n, _ := fmt.Sscanf(line, "Pss: %d kB", &kilobytes); n == 1 {
			u.memory = kilobytes << 10
		}
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return use{}, err
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	for _, field := range fields[11:13] { // utime, stime, in hundredths of a second
		ticks, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return use{}, err
		}
		u.processor += time.Duration(ticks) * 10 * time.Millisecond
	}
	return u, nil
}
