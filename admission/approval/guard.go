package approval

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/airlock-mcp/airlock/internal/lazyregexp"
	"github.com/airlock-mcp/airlock/internal/procfs"
)

// ErrOfHost is returned if an approval comes from a process of the agent's host, such as a shell
// that the model controls. Such a process can refuse a call, but not approve it.
var ErrOfHost = errors.New("the answer comes from the agent's own host")

// ErrNoTerminal is returned if an approval was not given at a terminal, so that it may not come
// from a person.
var ErrNoTerminal = errors.New("the answer does not come from a person's terminal")

var errHostEnded = errors.New("the host has ended")

// guard decides whether a process may approve. It relies on the kernel's information about the
// process and its ancestors, never on the process's own claims.
type guard struct {
	host int // process ID of the agent's host, or 0
}

// check returns nil if the process pid may approve: it runs this program in the foreground of a
// terminal, and neither it nor the process at the terminal's other end was started by the agent's
// host, or by an ancestor of the host that may start programs for it.
func (g guard) check(pid int) error {
	line, err := ancestry(pid)
	if err != nil || len(line) == 0 {
		return fmt.Errorf("%w: process %d cannot be inspected", ErrNoTerminal, pid)
	}
	p := line[0]
	switch {
	case !procfs.RunsThisProgram(pid):
		return fmt.Errorf("%w: it was not sent by the airlock program that asks, but by another, or another version",
			ErrNoTerminal)
	case p.tracer != 0:
		return fmt.Errorf("%w: process %d debugs it", ErrNoTerminal, p.tracer)
	case p.terminal == 0:
		return fmt.Errorf("%w: it was sent without a terminal", ErrNoTerminal)
	case p.foreground != p.group:
		return fmt.Errorf("%w: it was sent from the background of a terminal", ErrNoTerminal)
	}
	host, err := g.line()
	if err != nil {
		return err
	}
	if err := host.apart(line); err != nil {
		return err
	}
	return host.terminalApart(p, line)
}

// isAll reports whether the host is the first process of a container. All processes that did not
// enter from outside descend from it.
func (h hostLine) isAll() bool { return len(h) == 1 && h[0].pid == 1 }

// line returns the host with its ancestors. It is empty without a host.
func (g guard) line() (hostLine, error) {
	if g.host <= 0 {
		return nil, nil
	}
	if g.host == 1 {
		first, err := readProcess(1)
		if err != nil {
			return nil, fmt.Errorf("%w: the host cannot be inspected: %w", ErrOfHost, err)
		}
		if startsSessions(first) {
			return nil, nil // not a host: the process that started this one has ended
		}
		return hostLine{first}, nil
	}
	line, err := ancestry(g.host)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%w: %w", ErrOfHost, errHostEnded)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: the host cannot be inspected: %w", ErrOfHost, err)
	}
	return line, nil
}

// hostLine is the agent's host and its ancestors, the host first.
type hostLine []process

// apart returns nil if a process, the first of a line of ancestors, shares with the host only an
// ancestor that starts people's sessions. Any other common ancestor may start programs for the
// host: an editor its terminals, a multiplexer its windows, a wrapper its children.
func (h hostLine) apart(line []process) error {
	if len(h) == 0 {
		return nil
	}
	if last := len(line) - 1; h.isAll() && (last < 0 || line[last].parent != 0) {
		return fmt.Errorf("%w: the host is the first process here, and has started all", ErrOfHost)
	}
	for i, p := range line {
		if p.session != 0 && p.session == h[0].session {
			return fmt.Errorf("%w: process %d (%q) is in the host's session", ErrOfHost, p.pid, p.name)
		}
		if !slices.ContainsFunc(h, func(ancestor process) bool { return ancestor.pid == p.pid }) {
			continue
		}
		if p.pid == h[0].pid || !startsSessions(p) {
			return fmt.Errorf("%w: process %d (%q) has started both", ErrOfHost, p.pid, p.name)
		}
		return h.unrelated(line[:i])
	}
	return h.unrelated(line)
}

// unrelated checks a line of ancestors whose only process in common with the host is the one that
// adopts orphans. The last process in the line was started by it or is an orphan. Its real parent
// is then unknown, so only its start time and its control group count as evidence. A user can move
// any process into many groups, such as those of user services: these groups count for terminal
// programs only.
func (h hostLine) unrelated(line []process) error {
	if len(line) == 0 {
		return fmt.Errorf("%w: it is an ancestor of the host", ErrOfHost)
	}
	for _, p := range line {
		if schedulesJobs(p) {
			return fmt.Errorf("%w: process %d (%q) starts jobs for programs", ErrOfHost, p.pid, p.name)
		}
		if isTransient(p) {
			return fmt.Errorf("%w: process %d (%q) was started as a service for a program", ErrOfHost, p.pid, p.name)
		}
	}
	last := line[len(line)-1]
	switch {
	case last.parent == 0: // it entered this container or machine from outside
	case last.started < h[0].started: // it is older than the host
	case last.fixed != h[0].fixed: // control groups are inherited, and the host cannot choose these
	case last.cgroup != h[0].cgroup && last.isTerminal: // a window on a user's screen, opened by the desktop
	case last.parent > 1 && isLoginService(last.parent): // a login service adopts no orphans
	default:
		return fmt.Errorf("%w: process %d (%q) is detached and younger than the host", ErrOfHost, last.pid, last.name)
	}
	return nil
}

// terminalApart returns nil if the terminal of a process is not the host's and the process at its
// other end is unrelated to the host: a program that types into its own pseudo-terminal is not a
// person.
func (h hostLine) terminalApart(p process, line []process) error {
	if len(h) > 0 && h[0].terminal == p.terminal {
		return fmt.Errorf("%w: the terminal is the host's own", ErrOfHost)
	}
	index, pty := isPTY(p.terminal)
	if !pty {
		return nil // a console
	}
	pids, err := holders(index)
	if err != nil {
		return fmt.Errorf("%w: its terminal cannot be inspected: %w", ErrNoTerminal, err)
	}
	for _, pid := range pids {
		if pid == p.pid {
			return fmt.Errorf("%w: the program holds both ends of its terminal", ErrNoTerminal)
		}
		holder, err := ancestry(pid)
		if errors.Is(err, os.ErrNotExist) {
			continue // it has ended
		}
		if err != nil {
			return fmt.Errorf("%w: what holds its terminal cannot be inspected: %w", ErrNoTerminal, err)
		}
		if err := h.apart(holder); err != nil {
			return fmt.Errorf("what holds the terminal: %w", err)
		}
	}
	if len(pids) > 0 || len(h) == 0 || entered(line) || slices.ContainsFunc(line, isClosed) {
		return nil
	}
	return fmt.Errorf("%w: what holds its terminal cannot be seen", ErrNoTerminal)
}

// entered reports whether a line of ancestors started outside the view of this process: outside its
// container, or in another user's program, such as a login service.
func entered(line []process) bool {
	if os.Geteuid() == 0 || line[len(line)-1].parent == 0 {
		return true // root can inspect every process
	}
	return slices.ContainsFunc(line, func(p process) bool { return p.user != os.Geteuid() && !schedulesJobs(p) })
}

// isClosed reports whether a process of this user cannot be inspected by the user, such as a
// terminal program that runs with another group's rights.
func isClosed(p process) bool {
	_, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", p.pid))
	return errors.Is(err, os.ErrPermission)
}

// sessionStarters matches programs that start people's sessions and applications, by their names in
// the kernel, which are cut to 15 characters: init systems, logins, desktops. The host cannot
// choose the name of its ancestor.
var sessionStarters = lazyregexp.New(`^(` + strings.Join([]string{
	`systemd`, `init`, `tini`, `dumb-init`, `docker-init`, `catatonit`, `conmon`, `s6-.*`, `runsv.*`, `supervisord`,
	`containerd-shim.*`,
	`sshd.*`, `dropbear`, `login`, `a?getty`, `gdm.*`, `lightdm`, `sddm.*`, `xdm`, `greetd`, `ly-dm`,
	`dbus-(daemon|broker).*`, `gnome-s(ession|hell).*`, `plasma.*`, `startplasma.*`, `ksmserver`, `kwin_.*`,
	`xfce4-(session|panel)`, `xfwm4`, `xfdesktop`,
	`cinnamon.*`, `mate-(session|panel)`, `lx(qt-)?session`, `lxqt-panel`, `sway`, `Hyprland`, `i3`, `openbox`,
	`fluxbox`, `labwc`, `river`, `niri`, `wayfire`, `weston`,
	`Xorg`, `Xwayland`, `xinit`, `startx`,
}, "|") + `)$`)

func startsSessions(p process) bool { return sessionStarters.MatchString(p.name) }

// loginServices matches programs that start sessions and adopt no orphans.
var loginServices = lazyregexp.New(`^(sshd.*|dropbear|login|a?getty)$`)

func isLoginService(pid int) bool {
	p, err := readProcess(pid)
	return err == nil && loginServices.MatchString(p.name)
}

// jobSchedulers matches programs that start programs on anyone's request.
var jobSchedulers = lazyregexp.New(`^(cron|crond|anacron|fcron|atd|at|batch|incrond|systemd-run|run-parts)$`)

func schedulesJobs(p process) bool { return jobSchedulers.MatchString(p.name) }

// transientUnit matches unit names created by systemd-run.
var transientUnit = lazyregexp.New(`/run-[a-z]?[0-9a-f-]+\.(service|scope)\b`)

func isTransient(p process) bool { return transientUnit.MatchString(p.cgroup) }
