// Package config reads the configuration file of Airlock. It is strict: an unknown key, a
// value of the wrong type or an unset variable is an error with the position and the
// correction. A file that an agent host uses for its MCP servers works unchanged.
//
// The package makes no decisions. It returns typed values to the command line, which passes
// each component the values that it needs.
package config

import (
	"time"

	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/egress"
	"github.com/airlock-mcp/airlock/internal/quota"
	"github.com/airlock-mcp/airlock/internal/secret"
	"github.com/airlock-mcp/airlock/runner"
)

// SchemaAddress is the address of docs/airlock.schema.json, the JSON Schema of the configuration file.
const SchemaAddress = "https://raw.githubusercontent.com/airlock-mcp/airlock/main/docs/airlock.schema.json"

// Config is a complete configuration that has been validated, with all defaults filled in.
type Config struct {
	File     string   // absolute path of the file; empty for the built-in configuration
	Servers  []Server // the enabled servers, sorted by ID
	Limits   Limits
	Policies []string // absolute paths of Cedar files; empty means the shipped policy
	Audit    Audit
	Secrets  Secrets
	Replay   Replay
	Agents   Agents
	Cluster  Cluster
	Running
	Discovery
	Files
	Serving
	// Placeholders numbers the placeholders of redacted values, so that equal values in one
	// run have equal placeholders. If it is false, a placeholder names the kind only.
	Placeholders bool
	// Personal is how personal data is redacted when it leaves a run.
	Personal Personal
	// Credentials are the variables anywhere in the file whose names are those of
	// credentials, see NamesCredential.
	Credentials []Variable

	origin
	findings []Finding // found while reading the file
}

// origin is the file that a configuration was read from.
type origin struct {
	source string // see Source
	text   []byte // see Text
	named  string // File as it was named, for findings

	disabled []string // see Disabled
}

// Disabled returns the names of the servers that the file disables, in the order of the file.
func (c *Config) Disabled() []string { return c.disabled }

// Variable is a variable of the environment that the file names.
type Variable struct {
	Name  string
	Value secret.Value
}

// Running configures sandboxes, verifications and images.
type Running struct {
	Sandbox Sandbox
	Runs    Runs
	Verify  Verify
	Images  Images
}

// Sandbox configures the sandboxes of runs.
type Sandbox struct {
	Driver    string        // "runsc" or "containerd"
	Memory    int64         // bytes, everything one sandbox uses together
	CPUs      float64       // cores
	PIDs      int           // processes and threads of the code
	Disk      int64         // bytes in all writable places together
	Inodes    int64         // files and directories in all writable places together
	OpenFiles uint64        // descriptors per process
	Timeout   time.Duration // wall time of one run; also the most a caller may ask for
	// BackgroundTimeout is Timeout for a run in the background, for which no request waits. If
	// the file does not set it, it is at least Timeout.
	BackgroundTimeout time.Duration
	Pool              int        // sandboxes kept ready per language; 0 keeps none
	MaxSandboxes      int        // concurrent runs
	Queue             int        // runs that may wait for a sandbox; further runs are refused
	Containerd        Containerd // for the driver of that name
	// Network lists the hosts that runs may ask for. The policies decide about each connection.
	Network []egress.Host
	// Asked lists which of memory, cpus and pids the file sets: a machine that cannot enforce
	// a configured limit must not run code.
	Asked []string
}

// Runs configures runs that wait for people.
type Runs struct {
	SuspendAfter time.Duration // until the sandbox of such a run is suspended; 0 means never
	// SuspendedSize is the maximum total size of the states of suspended runs, in bytes. One caller can use half of it.
	SuspendedSize int64
}

// Containerd configures the daemon that creates sandboxes if Driver is "containerd".
type Containerd struct {
	Address     string // of its socket, an absolute path
	Snapshotter string // the snapshotter with the images; if empty, the driver chooses it
	Shim        string // path of containerd-shim-runsc-v1; if empty, it is looked up beside airlock and in PATH
}

// Limits bound the output of runs and their tool calls.
type Limits struct {
	Profile string // the name of the defaults: "default" or "wide"
	Stdout  int64  // bytes of the code's stdout that are kept
	Stderr  int64  // bytes of the code's stderr that are kept
	Output  int64  // bytes the code may write before it is stopped
	Calls   CallLimits
}

// CallLimits bound the tool calls of runs.
type CallLimits struct {
	Run         int   // calls of one run
	Session     int   // calls of one session of the host, over all its runs
	Concurrent  int   // calls of one run at a time, those with unread answers included
	BytesIn     int64 // bytes of all results into one run
	BytesOut    int64 // bytes of all arguments out of one run
	ResultBytes int64 // bytes of one result
	// LargeResultBytes are the bytes of one result that is kept as a file of the session.
	LargeResultBytes int64
	UnreadBytes      int64         // bytes of answers that wait for one run's code to read them
	Timeout          time.Duration // until a server must have answered one call
	Repeats          int           // times that an equal call may return the same result in one run
	ServerRate       Rate          // of the calls to one server, over all runs
	ToolRate         Rate          // of the calls to one tool, over all runs
	// ApprovalTimeout is how long a question to a person stays open.
	ApprovalTimeout time.Duration
	CatalogRate     Rate // of one run's queries of the catalog
}

// Rate is a token bucket that holds Calls tokens and is refilled evenly at Calls in each Per.
// The zero value means that no rate is configured.
type Rate struct {
	Calls int
	Per   time.Duration
}

// Audit configures where the records of calls are written.
type Audit struct {
	Path string // absolute path of the log's directory; empty means the default under $AIRLOCK_HOME
	// Keep is how long records are kept at least; 0 keeps all.
	Keep time.Duration
	// ClearArguments records the values of arguments in clear text, not as keyed hashes.
	ClearArguments bool
	// KeepArguments is how long arguments are kept beside the log, encrypted; 0 keeps none.
	// ArgumentsSize is their maximum total size in bytes; the oldest are removed first.
	KeepArguments time.Duration
	ArgumentsSize int64
	// Witness is the address of the witness for the log's checkpoints, in the format of
	// package audit/witness; empty disables it. WitnessKey is the public key of an HTTP witness.
	Witness, WitnessKey string
	// WitnessDelay is how far the witness may be behind before calls are refused; 0 makes
	// each call wait for the witness.
	WitnessDelay time.Duration
	// Durability is where a record is stored before an act: Local or Replicated.
	Durability string
}

// The values of Audit.Durability.
const (
	Local      = "local"      // on the disk of this machine
	Replicated = "replicated" // in the database of the cluster, too
)

// The default timeouts of servers.
const (
	defaultStartTimeout      = 30 * time.Second
	installTimeout           = 2 * time.Minute // of a program that may install the server first
	defaultCallTimeout       = time.Minute
	defaultBackgroundTimeout = 10 * time.Minute
)

// Files bounds the files that runs pass to their caller and to later runs of their session.
type Files struct {
	Attachments Attachments
	Session     Session
}

// Attachments bound the size of the files that runs attach, and how long they are kept.
type Attachments struct {
	Files     int           // of one run
	FileBytes int64         // bytes of one file
	Bytes     int64         // bytes of all files of one run
	Keep      time.Duration // how long files are kept
	Size      int64         // the maximum total size of all kept files, in bytes
}

// Session bounds /workspace/session.
type Session struct {
	Bytes int64 // of all files of one session; 0 keeps no files between runs
	Files int   // number of files of one session
	Size  int64 // the maximum total size of the files of all sessions, in bytes
}

// Face configures the MCP tools that agent hosts see.
type Face struct {
	CallTool bool // offer the tool call_tool, for one call without code
}

// Replay configures how long the data for replays is kept.
type Replay struct {
	Keep time.Duration // 0 keeps nothing, and no run can be replayed
	Size int64         // the maximum total size of recordings, in bytes; the oldest are removed first
}

// Discovery configures how tools are listed, searched, and shown to callers.
type Discovery struct {
	// Profiles are the sets of servers and tools that callers see, sorted by name.
	// DefaultProfile is the profile of callers without one; if empty, they see all tools.
	Profiles       []*catalog.Profile
	DefaultProfile string
	// Refresh is how often the servers' tool lists are read again.
	Refresh    time.Duration
	Embeddings Embeddings
	Registry   Registry
}

// Embeddings configures the endpoint for semantic search of tools. The zero value disables
// semantic search.
type Embeddings struct {
	Table      string // absolute path of a table of words; may be empty
	URL        string // of an endpoint with OpenAI's API; may be empty
	Model      string // the endpoint's name of it
	Key        secret.Value
	Dimensions int           // 0 means the model's default
	Timeout    time.Duration // of one request
	Batch      int           // texts in one request
}

// Secrets configures the stores of credentials to which env and headers refer (age:NAME,
// keyring:NAME, env:NAME). Paths are absolute; an empty path means that the store is not
// configured.
type Secrets struct {
	AgeFile     string // a YAML mapping of names to texts, encrypted with age
	AgeIdentity string // absolute path of the key that decrypts AgeFile
	Keyring     string // the service in the operating system's keyring
}

// CallTime returns how long a host must wait for an answer: a run that asks a person once, in whole minutes.
func (c *Config) CallTime() time.Duration {
	return (c.Limits.Calls.ApprovalTimeout + c.Sandbox.Timeout + time.Minute - 1).Truncate(time.Minute)
}

// Default returns the configuration of a machine without a configuration file:
// no servers, and the defaults that docs/configuration.md lists.
func Default() *Config {
	limits := runner.DefaultLimits()
	return &Config{
		Running: Running{Verify: defaultVerify(), Sandbox: Sandbox{
			Driver:            "runsc",
			Containerd:        Containerd{Address: "/run/containerd/containerd.sock"},
			Memory:            limits.Memory,
			CPUs:              limits.CPUs,
			PIDs:              limits.PIDs,
			Disk:              limits.Disk,
			Inodes:            limits.Inodes,
			OpenFiles:         limits.OpenFiles,
			Timeout:           limits.Timeout,
			BackgroundTimeout: defaultBackgroundTimeout,
			Pool:              runner.DefaultPool,
			MaxSandboxes:      runner.DefaultSandboxes,
			Queue:             runner.DefaultWaiting,
		}, Runs: Runs{SuspendAfter: 30 * time.Second, SuspendedSize: quota.For(quota.Suspended).Total}},
		Limits:  profiles[0].limits,
		Secrets: Secrets{Keyring: "airlock"},
		Audit: Audit{KeepArguments: 7 * 24 * time.Hour, ArgumentsSize: 64 << 20, WitnessDelay: time.Minute,
			Durability: Local},
		Replay:  Replay{Keep: 7 * 24 * time.Hour, Size: 1 << 30},
		Agents:  defaultAgents(),
		Serving: Serving{Serve: defaultServe(), Auth: defaultAuth(), Kernel: defaultKernel()},

		Files: Files{
			Attachments: Attachments{Files: 32, FileBytes: 10 << 20, Bytes: 32 << 20, Keep: 7 * 24 * time.Hour,
				Size: 1 << 30},
			Session: Session{Bytes: 64 << 20, Files: 1000, Size: 1 << 30},
		},
		Discovery: Discovery{Refresh: 10 * time.Minute, Embeddings: Embeddings{Timeout: 2 * time.Second, Batch: 64},
			Registry: defaultRegistry()},
	}
}

// profiles are the sets of limits that limits.profile chooses from. The first
// is the default.
var profiles = []struct {
	name   string
	limits Limits
}{
	{"default", defaultOutput("default")},
	{"wide", Limits{Profile: "wide", Stdout: 1 << 20, Stderr: 1 << 20, Output: runner.DefaultLimits().Output,
		Calls: defaultCalls}},
}

// defaultOutput returns the default limits of a profile.
func defaultOutput(profile string) Limits {
	limits := runner.DefaultLimits()
	return Limits{Profile: profile, Stdout: limits.Stdout, Stderr: limits.Stderr, Output: limits.Output,
		Calls: defaultCalls}
}

// defaultCalls are limits that ordinary code does not reach.
var defaultCalls = CallLimits{
	Run: 1000, Session: 100_000, Concurrent: 16,
	BytesIn: 1 << 30, BytesOut: 256 << 20, ResultBytes: 12 << 20, LargeResultBytes: 128 << 20,
	UnreadBytes: 32 << 20,
	Timeout:     defaultCallTimeout, Repeats: 50,
	ServerRate: Rate{1000, 5 * time.Second}, ToolRate: Rate{1000, 5 * time.Second},
	CatalogRate: Rate{500, 10 * time.Second}, ApprovalTimeout: 10 * time.Minute,
}
