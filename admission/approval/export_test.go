package approval

import "time"

// Dir returns the directory of the questions.
func (d *Desk) Dir() string { return d.dir }

// ApproveAs sends an approval of a question as a process of a user would, and reports whether it was taken.
func (d *Desk) ApproveAs(id, digest string, user int) (taken bool, detail string) {
	answer := d.take(request{ID: id, Question: digest, Answer: replyApprove}, peer{user: user})
	return answer.Taken, answer.Detail
}

// Trusting returns options that let every process approve, so that tests of a desk need no
// terminal.
func Trusting(opts *Options) *Options {
	var o Options
	if opts != nil {
		o = *opts
	}
	o.mayApprove = func(int) error { return nil }
	return &o
}

// Process is a process in a fake /proc.
type Process struct {
	PID, Parent, Session, Terminal int
	Started                        uint64
	Name, Cgroup                   string
	Fixed                          string // the control groups that the user cannot enter
	IsTerminal                     bool
}

// Apart returns nil if the process with these ancestors is unrelated to the host.
func Apart(host, line []Process) error {
	convert := func(line []Process) []process {
		var out []process
		for _, p := range line {
			out = append(out, process{pid: p.PID, parent: p.Parent, session: p.Session, terminal: p.Terminal,
				started: p.Started, name: p.Name, cgroup: p.Cgroup, fixed: p.Fixed, isTerminal: p.IsTerminal})
		}
		return out
	}
	return hostLine(convert(host)).apart(convert(line))
}

// Wait is wait for tests.
func (e Escalation) Wait(q Question, now time.Time) (time.Duration, bool) { return e.wait(q, now) }
