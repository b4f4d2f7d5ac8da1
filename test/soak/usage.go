package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/airlock-mcp/airlock/internal/procfs"
)

// quantity is one thing that is looked at. Of it, more than slack above what it was is growth,
// when it is also more than the share of what it was.
type quantity struct {
	name  string
	unit  string
	slack float64
	share float64
	level bool // it has to be at rest after the work what it was before
}

// The quantities, in the order of a usage.
var quantities = []quantity{
	{"memory of the daemon, PSS", "MB", 8, .08, false},
	{"memory of its children, PSS", "MB", 25, .15, false},
	{"descriptors", "", 8, .05, true},
	{"threads", "", 8, .2, false},
	{"processes", "", 2, .1, true},
	{"control groups", "", 2, .1, true},
	{"mounts", "", 0, 0, true},
	{"disk beside the log", "MB", 2, .1, false},
	{"files beside the log", "", 20, .1, false},
}

// usage is what the daemon uses at one moment: a number for each quantity.
type usage []float64

// usage reads it.
func (d *daemon) usage() (usage, error) {
	pid := d.process.Pid
	own, err := memory(pid)
	if err != nil {
		return nil, err
	}
	var below float64
	family := descendants(pid)
	for _, child := range family {
		used, _ := memory(child) // none of one that has just ended
		below += used
	}
	descriptors, err := entries(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		return nil, err
	}
	threads, err := entries(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return nil, err
	}
	bytes, files := d.disk()
	return usage{own, below, descriptors, threads, float64(len(family)), d.groups(), d.mounts(), bytes, files}, nil
}

// memory is the proportional set size of a process, in megabytes (10⁶ bytes).
func memory(pid int) (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[0] == "Pss:" {
			kilobytes, err := strconv.ParseFloat(fields[1], 64)
			return kilobytes * 1024 / 1e6, err
		}
	}
	return 0, nil
}

// descendants returns all processes below one, those included that have ended and
// that their parents have not reaped.
func descendants(pid int) []int {
	pids, _ := procfs.PIDs() // empty on failure, which the count shows
	children := map[int][]int{}
	for _, p := range pids {
		if parent, err := procfs.Parent(p); err == nil {
			children[parent] = append(children[parent], p)
		}
	}
	found := slices.Clone(children[pid])
	for i := 0; i < len(found); i++ {
		found = append(found, children[found[i]]...)
	}
	return found
}

func entries(directory string) (float64, error) {
	list, err := os.ReadDir(directory)
	return float64(len(list)), err
}

// groups counts the control groups below that of the daemon, in the hierarchy that has
// most.
func (d *daemon) groups() float64 {
	most := 0
	if d.group == nil {
		return 0
	}
	for _, dir := range d.group.Dirs() {
		n := -1 // without itself
		_ = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
			if err == nil && e.IsDir() {
				n++
			}
			return nil
		})
		most = max(most, n)
	}
	return float64(most)
}

// mounts counts those that the daemon sees below its state directory.
func (d *daemon) mounts() float64 {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/mountinfo", d.process.Pid)) // none of one that has ended
	return float64(strings.Count(string(text), " "+d.home+"/"))
}

// disk returns the size in megabytes and the number of the files in the state directory and
// the directory for temporary files, except the log.
func (d *daemon) disk() (megabytes, files float64) {
	_ = filepath.WalkDir(d.home, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil: // it has just been removed
			return nil
		case e.IsDir() && (path == filepath.Join(d.home, "audit") || path == filepath.Join(d.home, "images")):
			return fs.SkipDir
		}
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			megabytes += float64(info.Size()) / 1e6
			files++
		}
		return nil
	})
	return megabytes, files
}
