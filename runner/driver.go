package runner

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"time"
)

// ErrNoNetwork is returned for a sandbox with a network device by drivers that cannot make one.
var ErrNoNetwork = errors.New("this driver supports only sandboxes without a network")

// ErrNoPrograms is returned for a program with its own input and output by drivers that cannot start one.
var ErrNoPrograms = errors.New("this driver does not support sandboxes for servers")

// Image is an unpacked OCI image that sandboxes are made from.
type Image struct {
	Name   string   // "python" or "node"
	Digest string   // "sha256:…" of the OCI manifest
	RootFS string   // directory on the host with the unpacked root file system
	Layout string   // directory on the host with the image as an OCI layout; for drivers that import it
	Args   []string // the guest program and its arguments
	Env    []string // the whole environment; nothing is inherited
	// Unsaved forbids saving a sandbox and starting others from it.
	Unsaved bool
	// Fresh forbids starting a sandbox from another one that was saved. Its own state may be saved.
	Fresh bool
}

// Limits bound one sandbox. The zero value is not usable: see DefaultLimits.
type Limits struct {
	Memory    int64         // bytes, everything the sandbox uses together
	CPUs      float64       // cores
	PIDs      int           // processes and threads of the code
	Disk      int64         // bytes in all writable places together
	Inodes    int64         // files and directories in all writable places together
	OpenFiles uint64        // descriptors per process
	Timeout   time.Duration // wall time of one run
	Stdout    int64         // bytes of the code's stdout that are kept
	Stderr    int64         // bytes of the code's stderr that are kept
	Output    int64         // bytes the code may write to stdout and stderr before it is stopped
	Stream    int64         // bytes the code may write to each of them before it is stopped; 0: only Output counts
}

// Mount is a directory of the host that appears inside the sandbox, read-only.
type Mount struct {
	Source string // absolute path on the host
	Target string // absolute path inside
	// Live has the sandbox see the directory as it is at any time, not as it was at the start. Symbolic links lead to
	// paths inside the sandbox.
	Live bool `json:",omitempty"`
	// Writable has the sandbox change the directory of the host. It implies Live.
	Writable bool `json:",omitempty"`
	// Seen is called for each file that the sandbox opens or changes in a live mount, or tries to. nil reports nothing.
	Seen func(path string, write bool) `json:"-"`
}

// User is the user of the code inside of a sandbox. The zero value is the user without any files (65532).
type User struct{ UID, GID uint32 }

// TrustDir is where OpenSSL looks for cert.pem in the images, and where /etc/resolv.conf leads: the only mount target
// outside of /workspace.
const TrustDir = "/usr/lib/ssl"

// Spec describes the sandbox that a driver makes.
type Spec struct {
	ID       string // unique; [a-z0-9-], at most 63 characters
	Image    Image
	Limits   Limits
	Mounts   []Mount // beside what the driver always provides
	StateDir string  // directory on this host for the driver's own files; removed by the caller
	// Broker listens for the connections that the sandbox makes to /run/airlock/broker.sock. A driver connects them:
	// it dials the address of Broker for each one, also from another machine, or mounts SocketDir. If nil, connections
	// are refused.
	Broker net.Listener
	// Network is the sandbox's end of a network device: each message is an IP packet
	// (egress.Pair). It is lent until the start returns. If nil, the sandbox has a loopback device
	// only. A driver that does not support it returns ErrNoNetwork.
	Network *os.File
	// User is the user of the code inside. Only drivers that can serve live mounts support one.
	User User
}

// SocketDir returns the directory of this host with the socket of Broker and nothing else, or "" if Broker is nil.
// Drivers whose sandboxes run on this host can mount it.
func (s Spec) SocketDir() string {
	if s.Broker == nil {
		return ""
	}
	return filepath.Dir(s.Broker.Addr().String())
}

// Driver makes sandboxes. All methods may be called concurrently.
type Driver interface {
	// Name is the word used in configuration: "runsc" or "containerd".
	Name() string
	// Check reports in one sentence what this host lacks to run sandboxes. It does
	// not start one; Runner.Prove does.
	Check(ctx context.Context) error
	// Start starts the image's program in a fresh sandbox. When it returns an
	// error nothing is left behind. Cancelling ctx aborts the start only: a
	// started sandbox lives until Kill or Close.
	Start(ctx context.Context, spec Spec) (Process, error)
	// Sweep removes what is left of a sandbox whose Airlock has died: its
	// processes, mounts and control groups, found by the StateDir it had. The
	// caller has proved that the directory has no owner and removes it afterwards.
	Sweep(ctx context.Context, stateDir string) error
}

// Saver is a driver that can save a started sandbox and start others from what
// it saved. All methods may be called concurrently.
type Saver interface {
	Driver
	// Save stops a sandbox whose guest waits for its start line and keeps its
	// state. The sandbox cannot be used any more: the caller closes it, whatever Save returns.
	Save(ctx context.Context, p Process) (Template, error)
	// StartFrom is like Start, but the guest continues from the saved state and
	// does not send its ready line again. The state function returns it: StartFrom calls it at most
	// once, when everything else of the sandbox is ready. The spec's image, limits and mounts
	// must be those of the saved sandbox.
	StartFrom(ctx context.Context, spec Spec, state func() (Template, error)) (Process, error)
	// Load returns a template of a state that Template.State returned, for sandboxes
	// with this spec.
	Load(ctx context.Context, spec Spec, state io.Reader) (Template, error)
	// Format names the form of saved states: the driver and its version. Load cannot load another form.
	Format() string
}

// Template is a saved sandbox. Sandboxes that were started from it do not need
// it any more.
type Template interface {
	// Size is the memory it takes, in bytes.
	Size() int64
	// State returns a reader of the saved state.
	State() *io.SectionReader
	// Close frees that memory. It is called once, when no StartFrom runs.
	Close() error
}

// Process is a started sandbox. Methods may be called concurrently.
type Process interface {
	// Stdin, Stdout and Stderr are pipes to the guest program. The caller
	// drains the outputs; they end when the last process inside has closed them.
	Stdin() io.WriteCloser
	Stdout() io.Reader
	Stderr() io.Reader
	// Wait blocks until the guest program has ended and returns how. It may be
	// called many times and returns the same each time. An error other than the
	// context's means that the sandbox itself failed, not the program in it.
	Wait(ctx context.Context) (Exit, error)
	// Verify reads back from the host what the running sandbox really has
	// (namespaces, privileges, system call filter, file system, descriptors,
	// limits) and returns an error that names the first difference to what was
	// asked. It is called once, before the sandbox is trusted with code.
	Verify() error
	// Kill ends every process of the sandbox at once (SIGKILL). Calling it twice is fine.
	Kill() error
	// Usage reads what the sandbox has consumed so far.
	Usage() Usage
	// Close kills what still runs and removes everything Start made. After it
	// returns nothing of the sandbox is left on the host. Calling it twice is fine.
	Close() error
}

// Flusher is a process whose output passes through others on its way here.
type Flusher interface {
	Process
	// Flush returns when everything that the guest wrote to its outputs before
	// the call can be read from Stdout and Stderr without blocking. It returns an
	// error if that cannot be determined: the sandbox has ended, or ctx is done.
	Flush(ctx context.Context) error
}

// LimitReporter is a process that can report at any time which limit its code has reached.
type LimitReporter interface {
	Process
	// LimitMet returns a limit that the code has reached so far, even if the code
	// continues, or ReasonNone.
	LimitMet() Reason
}

// Exit describes how a guest program ended.
type Exit struct {
	Code   int    // exit status, when it exited by itself
	Signal int    // signal number, when a signal ended it; 0 otherwise
	Reason Reason // which limit ended the sandbox, if one did
}

// Reason is why a sandbox ended, as far as the host can prove it.
type Reason int

// The reasons. The zero value claims nothing.
const (
	ReasonNone Reason = iota
	ReasonMemory
	ReasonProcesses
	ReasonDisk
)

// Usage is what a sandbox has consumed.
type Usage struct {
	PeakMemory int64         // bytes; 0 when it cannot be read
	CPU        time.Duration // user and system; 0 when it cannot be read
}
