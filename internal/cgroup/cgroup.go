// Package cgroup bounds and kills process trees with Linux control groups,
// version 1 and 2 (kernel documentation, admin-guide/cgroup-v1 and
// admin-guide/cgroup-v2). It knows nothing of sandboxes.
package cgroup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/airlock-mcp/airlock/internal/cleanup"
)

// Limits bound the processes of one group together. A zero field sets no limit.
type Limits struct {
	Memory int64   // bytes, with what the kernel holds for the group; swap is never allowed on top
	CPUs   float64 // cores
	Tasks  int64   // processes and threads as the host counts them
}

// Stat contains what a group has consumed and which limits it reached. Fields that the
// group's controllers do not provide are zero.
type Stat struct {
	PeakMemory int64         // bytes
	CPU        time.Duration // user and system
	OOMKills   int64         // processes that the kernel killed at the memory limit
	TasksHit   int64         // forks and clones that the kernel refused at the task limit
}

// Controller is a resource that a group may bound.
type Controller string

// The controllers this package uses. The value is the kernel's name.
const (
	Memory  Controller = "memory"
	CPU     Controller = "cpu"
	PIDs    Controller = "pids"
	cpuacct Controller = "cpuacct" // version 1 only: accounts, bounds nothing
)

// Bounding lists the controllers that limits need, in the order in which they are reported.
func Bounding() []Controller { return []Controller{Memory, CPU, PIDs} }

// ErrUnavailable is returned if this process cannot create control groups.
var ErrUnavailable = errors.New("control groups are unavailable")

// Tree is the place under which this process may make groups. It is immutable
// and may be used concurrently.
type Tree struct {
	version int
	dirs    map[Controller]string // version 1: the directory of each controller; version 2: one directory for all
}

// Has reports whether groups of this tree can bound the resource.
func (t *Tree) Has(c Controller) bool { return t.dirs[c] != "" }

// Version is 1 or 2.
func (t *Tree) Version() int { return t.version }

// New makes a group. The name must be one path element that no other group of
// the tree has. A limit whose controller is missing is an error: a user that can
// live without it asks Has first and leaves it out.
func (t *Tree) New(name string, limits Limits) (*Group, error) {
	if name == "" || name == "." || name == ".." || filepath.Base(name) != name {
		return nil, fmt.Errorf("control group name %q is not one path element", name)
	}
	g := &Group{name: name, version: t.version, dirs: t.groupDirs(name)}
	var undo cleanup.Stack
	if err := g.make(limits, &undo); err != nil {
		return nil, errors.Join(fmt.Errorf("making control group %q: %w", name, err), undo.Run())
	}
	return g, nil
}

// Paths lists the directories that a group of this name has or would have.
func (t *Tree) Paths(name string) []string {
	return (&Group{dirs: t.groupDirs(name)}).Dirs()
}

func (t *Tree) groupDirs(name string) map[Controller]string {
	dirs := map[Controller]string{}
	for controller, dir := range t.dirs {
		dirs[controller] = filepath.Join(dir, name)
	}
	return dirs
}

// Group is one control group, or in version 1 one in each hierarchy. Methods
// may be called concurrently.
type Group struct {
	name    string
	version int
	dirs    map[Controller]string
	thread  *thread // version 1: sits in the group and forks from there
}

// Name is the last element of the group's path in every hierarchy.
func (g *Group) Name() string { return g.name }

// Dirs lists the group's directories, each once, so that a later process can hand
// them to Remove.
func (g *Group) Dirs() []string {
	var dirs []string
	for _, dir := range g.dirs {
		dirs = append(dirs, dir)
	}
	slices.Sort(dirs)
	return slices.Compact(dirs)
}

func (g *Group) make(limits Limits, undo *cleanup.Stack) error {
	for _, dir := range g.Dirs() {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
		undo.Add(func() error { return remove(context.Background(), []string{dir}) })
	}
	settings := v2Settings
	if g.version == 1 {
		settings = v1Settings
	}
	for _, s := range settings(limits) {
		if err := g.set(s); err != nil {
			return err
		}
	}
	if g.version == 1 {
		t, err := newThread(g.Dirs())
		if err != nil {
			return err
		}
		g.thread = t
	}
	return nil
}

// setting is one value for one control file.
type setting struct {
	controller Controller
	file       string
	value      string
	optional   bool // the kernel may lack the file, for instance without swap accounting
}

func (g *Group) set(s setting) error {
	dir, ok := g.dirs[s.controller]
	if !ok {
		return fmt.Errorf("no %s controller here: %w", s.controller, ErrUnavailable)
	}
	file, err := os.OpenFile(filepath.Join(dir, s.file), os.O_WRONLY, 0)
	if errors.Is(err, os.ErrNotExist) && s.optional {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = file.WriteString(s.value)
	return errors.Join(err, file.Close())
}
