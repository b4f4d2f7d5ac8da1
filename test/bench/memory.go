package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/airlock-mcp/airlock/internal/cleanup"
)

// parked is how many sandboxes of each language wait when memory is measured:
// they share pages with each other and with Airlock, and each counts its part.
const parked = 8

const (
	// settling is how long the number of sandboxes must not have changed.
	settling = 2 * time.Second

	// settleLimit is how long the first sandboxes may take, with other programs on the machine.
	settleLimit = 5 * time.Minute
)

// measureMemory reads what sandboxes take that are ready and wait for a run.
func measureMemory(ctx context.Context, b *bench) (err error) {
	var undo cleanup.Stack
	defer func() { err = errors.Join(err, undo.Run()) }()
	airlock, err := b.openFace(ctx, pooled(parked), &undo)
	if err != nil {
		return err
	}
	for _, lang := range languages() { // after a run, the pool tries a start again that failed
		if err := airlock.run(ctx, lang, lang.trivial, nil); err != nil {
			return err
		}
	}
	if err := settle(ctx, airlock.process.Pid); err != nil {
		return err
	}
	for _, lang := range languages() {
		var proportional, private sample
		for _, pids := range sandboxesOf(airlock.process.Pid, lang) {
			use, err := memoryOf(pids)
			if err != nil {
				return err
			}
			proportional = append(proportional, use.proportional)
			private = append(private, use.private)
		}
		name := "idle warm sandbox, " + lang.name
		b.table.add(newRow(name+", PSS", "MB", proportional).aims(lang.idle),
			newRow(name+", of this unshared", "MB", private))
	}
	return nil
}

// settle waits until a sandbox of each language waits for a run, and their number stays the same.
func settle(ctx context.Context, airlock int) error {
	ctx, cancel := context.WithTimeoutCause(ctx, settleLimit,
		fmt.Errorf("after %v, a language has no sandbox that waits", settleLimit))
	defer cancel()
	seen, since := 0, time.Now()
	for time.Since(since) < settling {
		if err := rest(ctx, settling/20); err != nil {
			return err
		}
		now, complete := 0, true
		for _, lang := range languages() {
			n := len(sandboxesOf(airlock, lang))
			now, complete = now+n, complete && n > 0
		}
		if now != seen || !complete {
			seen, since = now, time.Now()
		}
	}
	return nil
}

// sandboxesOf returns the processes of each sandbox of a language: Airlock's
// children that have the language's image open, with all below them.
func sandboxesOf(airlock int, lang language) [][]int {
	children := family()
	var found [][]int
	for _, child := range children[airlock] {
		if hasOpen(child, "/images/"+lang.id+"/") {
			found = append(found, withAllBelow(children, child))
		}
	}
	return found
}

// family returns the children of all processes. Those that end meanwhile are
// left out.
func family() map[int][]int {
	children := map[int][]int{}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is well-formed
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		// The second field is the program's name, in brackets; the fourth the parent.
		fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
		pid, pidErr := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		parent, parentErr := strconv.Atoi(fields[1])
		if pidErr == nil && parentErr == nil {
			children[parent] = append(children[parent], pid)
		}
	}
	return children
}

func withAllBelow(children map[int][]int, pid int) []int {
	all := []int{pid}
	for _, child := range children[pid] {
		all = append(all, withAllBelow(children, child)...)
	}
	return all
}

func hasOpen(pid int, part string) bool {
	links, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid)) // the pattern is well-formed
	for _, link := range links {
		if to, err := os.Readlink(link); err == nil && strings.Contains(to, part) {
			return true
		}
	}
	return false
}

// usage is memory in megabytes (10⁶ bytes).
type usage struct {
	proportional float64 // pages that are shared count in equal parts for all who share them
	private      float64
}

var memoryLine = regexp.MustCompile(`(?m)^(Pss|Private_Clean|Private_Dirty): +(\d+) kB$`)

func memoryOf(pids []int) (usage, error) {
	spaces, err := addressSpaces(pids)
	if err != nil {
		return usage{}, err
	}
	var sum usage
	for _, pid := range spaces {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
		if err != nil {
			return usage{}, fmt.Errorf("reading the memory of a sandbox: %w", err)
		}
		for _, match := range memoryLine.FindAllStringSubmatch(string(text), -1) {
			kilobytes, err := strconv.ParseFloat(match[2], 64)
			if err != nil {
				return usage{}, err
			}
			megabytes := kilobytes * 1024 / 1e6
			if match[1] == "Pss" {
				sum.proportional += megabytes
			} else {
				sum.private += megabytes
			}
		}
	}
	return sum, nil
}

// addressSpaces returns the first process of each address space. The threads in which gVisor
// runs the code of a process are processes that share one.
func addressSpaces(pids []int) ([]int, error) {
	const sameMemory = 1 // KCMP_VM, kcmp(2)
	var first []int
next:
	for _, pid := range pids {
		for _, other := range first {
			order, _, errno := unix.Syscall6(unix.SYS_KCMP, uintptr(pid), uintptr(other), sameMemory, 0, 0, 0)
			if errno != 0 {
				return nil, fmt.Errorf("comparing the memory of the processes %d and %d: %w", pid, other, errno)
			}
			if order == 0 {
				continue next
			}
		}
		first = append(first, pid)
	}
	return first, nil
}
