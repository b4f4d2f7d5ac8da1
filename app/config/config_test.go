package config

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/airlock-mcp/airlock/app/configfile"
	"github.com/airlock-mcp/airlock/internal/secret"
)

// noEnv is an empty environment.
func noEnv(string) (string, bool) { return "", false }

// envOf is an environment with exactly these variables.
func envOf(vars map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		value, ok := vars[name]
		return value, ok
	}
}

// load writes text as airlock.yaml and loads it.
func load(t *testing.T, text string, env func(string) (string, bool)) (*Config, error) {
	t.Helper()
	return loadAs(t, "airlock.yaml", text, env)
}

func loadAs(t *testing.T, name, text string, env func(string) (string, bool)) (*Config, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return Load(path, env)
}

func mustLoad(t *testing.T, text string, env func(string) (string, bool)) *Config {
	t.Helper()
	c, err := load(t, text, env)
	if err != nil {
		t.Fatalf("got error %v, want a configuration", err)
	}
	return c
}

var sameValues = cmp.Options{
	cmpopts.IgnoreUnexported(Config{}, Server{}),
	cmp.Comparer(func(a, b secret.Value) bool { return a.Reveal() == b.Reveal() }),
	cmpopts.EquateComparable(netip.Prefix{}),
}

func TestEveryKeyReachesItsField(t *testing.T) {
	c := mustLoad(t, `
mcpServers:
  files:
    command: npx
    args: [-y, "@modelcontextprotocol/server-filesystem", /srv/docs, 8080]
    env: {TOKEN: "${TOKEN}", PORT: 8080, DEBUG: true, EMPTY: ""}
    cwd: data
    startTimeout: 5s
    callTimeout: 2m
  crm:
    url: "https://${HOST:-crm.example.com}/mcp"
    headers: {Authorization: "Bearer ${TOKEN}"}
servers:
  files:
    trustAnnotations: true
    allow: [read_file, "list_*"]
    deny: [delete_file]
    rate: 20/s
    tools: {move_file: {risk: destructive, rate: 5/m}}
sandbox: {driver: containerd, memory: 1GiB, cpus: 0.5, pids: 64, disk: 10MiB, inodes: 512, openFiles: 128,
  timeout: 1m30s, pool: 0, maxSandboxes: 4, queue: 0,
  containerd: {address: /run/c.sock, snapshotter: native, shim: bin/shim}}
limits: {stdout: 1KiB, stderr: 2000, output: 1MB, calls: 7, sessionCalls: 70, concurrentCalls: 3, callTimeout: 5s,
	approvalTimeout: 90s,
  bytesIn: 1MiB, bytesOut: 2MiB, resultBytes: 3KiB, largeResultBytes: 5KiB,
	unreadBytes: 4KiB, repeats: 9, rate: 1/s, toolRate: 2/3s,
	catalogRate: 4/h}
policies: [policies/default.cedar, /etc/airlock/team.cedar]
audit: {path: audit.jsonl, clearArguments: true, keepArguments: 24h, argumentsSize: 2MiB,
	witness: "https://w.example/", witnessKey: "w+d41461e9+BAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f",
	witnessDelay: 5s}
replay: {keep: 48h, size: 3MiB}
tools: {ttl: 5m}
search: {embeddings: {url: "https://e.example/v1", model: m, key: "keyring:e", dimensions: 256, timeout: 1s, batch: 8}}
redaction: {placeholders: true}
registry: {url: "https://registry.example/mcp", allow: [io.github.acme/*, com.example/weather@1.2.0]}
attachments: {files: 3, fileBytes: 2KiB, bytes: 4KiB, keep: 2h, size: 5MiB}
session: {bytes: 6KiB, files: 7, size: 8MiB}
face: {callTool: true}
models:
  gpt-4: {url: "https://api.openai.com/v1", key: "keyring:openai", timeout: 30s}
  gemini-pro: {url: "http://127.0.0.1:9/v1", model: gemini-3-pro}
kernel:
  actions: {database_query: {server: crm, tool: query}, send_email: {server: files, tool: send}}
  policies: [policies/named.cedar]
  files: 9
  fileBytes: 2KiB
  bytes: 3KiB
images: {python: {packages: [pandas, numpy, "numpy>=2,<3", numpy]}, node: {packages: ["lodash@^4.17.0"]},
	lock: ../p.lock}
verify: {timeout: 5s, memory: 1GiB, maxSandboxes: 2, queue: 3}
runs: {suspendAfter: 40s, suspendedSize: 2GiB}
serve: {trustedProxies: [10.1.2.3/8, 192.0.2.7, "2001:db8::/32"], callerRequests: 20}
secrets: {ageFile: keys.age, ageIdentity: /etc/airlock/age.txt, keyring: team}
`, envOf(map[string]string{"TOKEN": "hunter2"}))
	dir := filepath.Dir(c.File)

	want := &Config{
		File: c.File,
		Servers: []Server{
			{ID: "crm", Transport: TransportHTTP, URL: "https://crm.example.com/mcp",
				Headers:      map[string]secret.Value{"Authorization": secret.New("Bearer hunter2")},
				StartTimeout: 30 * time.Second, CallTimeout: 5 * time.Second}, // that of all servers
			{ID: "files", Transport: TransportStdio, Command: "npx",
				Args: []string{"-y", "@modelcontextprotocol/server-filesystem", "/srv/docs", "8080"},
				Env: map[string]secret.Value{"TOKEN": secret.New("hunter2"), "PORT": secret.New("8080"),
					"DEBUG": secret.New("true"), "EMPTY": secret.New("")},
				Cwd: filepath.Join(dir, "data"), StartTimeout: 5 * time.Second, CallTimeout: 2 * time.Minute,
				Settings: Settings{TrustAnnotations: true, Allow: []string{"read_file", "list_*"},
					Deny: []string{"delete_file"}, Rate: Rate{20, time.Second},
					Tools: map[string]Tool{"move_file": {Risk: "destructive", Rate: Rate{5, time.Minute}}}}},
		},
		Running: Running{Runs: Runs{SuspendAfter: 40 * time.Second, SuspendedSize: 2 << 30},
			Verify: Verify{Timeout: 5 * time.Second, Memory: 1 << 30, MaxSandboxes: 2, Queue: 3, Pool: 1},
			Images: Images{
				Python: Packages{[]string{"numpy", "numpy>=2,<3", "pandas"}},
				Node:   Packages{[]string{"lodash@^4.17.0"}}, Lock: filepath.Join(filepath.Dir(dir), "p.lock"),
			}, Sandbox: Sandbox{Driver: "containerd", Memory: 1 << 30, CPUs: 0.5, PIDs: 64, Disk: 10 << 20, Inodes: 512,
				OpenFiles: 128, Timeout: 90 * time.Second, BackgroundTimeout: 10 * time.Minute, Pool: 0,
				MaxSandboxes: 4, Queue: 0, Asked: []string{"memory", "cpus", "pids"},
				Containerd: Containerd{Address: "/run/c.sock", Snapshotter: "native",
					Shim: filepath.Join(dir, "bin/shim")}}},
		Limits: Limits{Profile: "default", Stdout: 1024, Stderr: 2000, Output: 1_000_000, Calls: CallLimits{
			Run: 7, Session: 70, Concurrent: 3, BytesIn: 1 << 20, BytesOut: 2 << 20, ResultBytes: 3 << 10,
			LargeResultBytes: 5 << 10,
			UnreadBytes:      4 << 10,
			Timeout:          5 * time.Second, Repeats: 9,
			ServerRate: Rate{1, time.Second}, ToolRate: Rate{2, 3 * time.Second}, CatalogRate: Rate{4, time.Hour},
			ApprovalTimeout: 90 * time.Second,
		}},
		Policies: []string{filepath.Join(dir, "policies/default.cedar"), "/etc/airlock/team.cedar"},
		Files: Files{
			Attachments: Attachments{Files: 3, FileBytes: 2 << 10, Bytes: 4 << 10, Keep: 2 * time.Hour, Size: 5 << 20},
			Session:     Session{Bytes: 6 << 10, Files: 7, Size: 8 << 20},
		},
		Audit: Audit{
			Path: filepath.Join(dir, "audit.jsonl"), ClearArguments: true, KeepArguments: 24 * time.Hour,
			ArgumentsSize: 2 << 20,
			Witness:       "https://w.example/", WitnessKey: "w+d41461e9+BAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f",
			WitnessDelay: 5 * time.Second, Durability: Local,
		},
		Replay: Replay{Keep: 48 * time.Hour, Size: 3 << 20}, Placeholders: true,
		Discovery: Discovery{Refresh: 5 * time.Minute,
			Embeddings: Embeddings{URL: "https://e.example/v1", Model: "m", Key: secret.New("keyring:e"),
				Dimensions: 256, Timeout: time.Second, Batch: 8},
			Registry: Registry{URL: "https://registry.example/mcp", Allow: []string{"io.github.acme/*",
				"com.example/weather@1.2.0"}}},
		Serving: Serving{Face: Face{CallTool: true},
			Serve: Serve{Listen: "127.0.0.1:7823", CallerRequests: 20, Console: true,
				TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"),
					netip.MustParsePrefix("192.0.2.7/32"), netip.MustParsePrefix("2001:db8::/32")},
				DrainTime: 30 * time.Second}, Auth: Auth{Types: []string{"at+jwt"}, GroupsClaim: "groups"},
			Kernel: Kernel{
				Models: []Model{
					{Name: "gemini-pro", URL: "http://127.0.0.1:9/v1", Model: "gemini-3-pro", Timeout: time.Minute},
					{Name: "gpt-4", URL: "https://api.openai.com/v1", Model: "gpt-4", Key: secret.New("keyring:openai"),
						Timeout: 30 * time.Second},
				},
				Actions: map[string]Action{"database_query": {Server: "crm", Tool: "query", SQL: "query"},
					"send_email": {Server: "files", Tool: "send"}},
				Policies: []string{filepath.Join(dir, "policies/named.cedar")},
				Files:    KernelFiles{Files: 9, FileBytes: 2 << 10, Bytes: 3 << 10},
			}},
		Agents:  Agents{QuestionTime: 10 * time.Minute, Rate: Rate{60, time.Minute}},
		Secrets: Secrets{AgeFile: filepath.Join(dir, "keys.age"), AgeIdentity: "/etc/airlock/age.txt", Keyring: "team"},
	}
	// two places name it
	want.Credentials = []Variable{{"TOKEN", secret.New("hunter2")}, {"TOKEN", secret.New("hunter2")}}
	if diff := cmp.Diff(want, c, sameValues); diff != "" {
		t.Errorf("configuration differs (-want +got):\n%s", diff)
	}
	if got := Lint(c); len(got) != 0 {
		t.Errorf("got findings %v, want none", got)
	}
}

func TestFilesThatMeanTheDefaults(t *testing.T) {
	for name, text := range map[string]string{
		"an empty file":         "",
		"only comments":         "# nothing yet\n",
		"sections without keys": "mcpServers:\nsandbox:\nlimits: {}\npolicies: []\n",
		"null":                  "null\n",
		"an empty JSON object":  "{}",
	} {
		t.Run(name, func(t *testing.T) {
			c := mustLoad(t, text, noEnv)
			if diff := cmp.Diff(Default(), c, sameValues, cmpopts.IgnoreFields(Config{}, "File"),
				cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("configuration differs from the default (-want +got):\n%s", diff)
			}
		})
	}
}

func TestProfileIsOverriddenWhereverItStands(t *testing.T) {
	for name, text := range map[string]string{
		"before": "limits: {profile: wide, stdout: 2KiB}",
		"after":  "limits: {stdout: 2KiB, profile: wide}",
	} {
		t.Run(name, func(t *testing.T) {
			got := mustLoad(t, text, noEnv).Limits
			if got.Stdout != 2<<10 || got.Stderr != 1<<20 || got.Profile != "wide" {
				t.Errorf("got %+v, want stdout 2048 and stderr 1048576 of the profile wide", got)
			}
		})
	}
}

func TestFilesThatCannotBeRead(t *testing.T) {
	large := filepath.Join(t.TempDir(), "large.yaml")
	if err := os.WriteFile(large, make([]byte, configfile.MaxSize+1), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ path, want string }{
		"missing":     {"/no/such.yaml", "/no/such.yaml: cannot read the configuration: no such file or directory"},
		"too large":   {large, large + ": the file is larger than 4MiB"},
		"a directory": {"/", "/: cannot read the configuration: is a directory"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Load(c.path, noEnv)
			var ce *Error
			if !errors.As(err, &ce) {
				t.Fatalf("got %v, want an *Error", err)
			}
			if ce.Error() != c.want || ce.Hint() == "" {
				t.Errorf("got %q (hint %q), want %q with a hint", ce.Error(), ce.Hint(), c.want)
			}
		})
	}
}

// By default, the timeout of a background run is at least that of other runs.
func TestTheBackgroundTimeoutFollowsTheTimeout(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"sandbox: {timeout: 20s}":                        10 * time.Minute,
		"sandbox: {timeout: 1h}":                         time.Hour,
		"sandbox: {timeout: 1h, backgroundTimeout: 30s}": 30 * time.Second,
		"sandbox: {backgroundTimeout: 2h}":               2 * time.Hour,
		"audit: {path: audit.jsonl}":                     10 * time.Minute,
	} {
		if got := mustLoad(t, text, noEnv).Sandbox.BackgroundTimeout; got != want {
			t.Errorf("%s: got %v, want %v", text, got, want)
		}
	}
}

// By default, launchers that may install a program first get a longer start timeout.
func TestStartTimeoutOfLaunchers(t *testing.T) {
	c, err := load(t, `mcpServers:
  a: {command: npx, args: [-y, x]}
  b: {command: /usr/bin/uvx, args: [x]}
  c: {command: node, args: [npx]}
  d: {command: npx, args: [x], startTimeout: 5s}
  e: {url: "https://x.example"}
`, noEnv)
	if err != nil {
		t.Fatal(err)
	}
	var got []time.Duration
	for _, server := range c.Servers {
		got = append(got, server.StartTimeout)
	}
	if diff := cmp.Diff([]time.Duration{2 * time.Minute, 2 * time.Minute, 30 * time.Second, 5 * time.Second,
		30 * time.Second}, got); diff != "" {
		t.Errorf("times differ (-want +got):\n%s", diff)
	}
}

func TestProfiles(t *testing.T) {
	c, err := load(t, `mcpServers:
  files: {command: x}
  crm-a: {command: x}
  off: {command: x, disabled: true}
profiles:
  reading:
    default: true
    servers: {files: [read_*, list], "crm-*": "*", off: [x]}
  two: {servers: [files, off]}
`, noEnv)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"": "reading", "reading": "reading", "two": "two"} {
		if p, err := c.Profile(name); err != nil || p.Name != want {
			t.Errorf("profile %q: got %v, %v, want %s", name, p, err, want)
		}
	}
	reading, _ := c.Profile("reading")
	two, _ := c.Profile("two")
	for _, seen := range []bool{
		reading.Shows("files", "read_x"), reading.Shows("crm-a", "any"), reading.Shows("off", "x"),
		two.Shows("files", "write"),
		!reading.Shows("files", "write"), !reading.Shows("crm", "any"), !two.ShowsServer("crm-a"),
	} {
		if !seen {
			t.Errorf("got %+v and %+v", reading, two)
		}
	}
	var unknown *ProfileError
	if _, err := c.Profile("readin"); !errors.As(err, &unknown) ||
		unknown.Hint() != `did you mean "reading"? the profiles are reading, two` {
		t.Errorf("got %v, want a *ProfileError with a hint", err)
	}
	if p, err := Default().Profile(""); p != nil || err != nil {
		t.Errorf("without profiles: got %v, %v, want none", p, err)
	}
	if _, err := Default().Profile("x"); !errors.As(err, &unknown) || !strings.Contains(unknown.Hint(), "has none") {
		t.Errorf("without profiles: got %v, want a *ProfileError", err)
	}
	c, err = load(t, "mcpServers: {files: {command: x}}\nprofiles: {a: {servers: ['crm-*', files]}}\n", noEnv)
	if err != nil {
		t.Fatal(err)
	}
	if findings := Lint(c); len(findings) != 1 || !strings.Contains(
		findings[0].String(), "profiles.a.servers[0] fits no server") {
		t.Errorf("got %v, want that a pattern fits no server", findings)
	}
}

// A host that gives up before a question does would lose the answer (issue 27).
func TestCallTime(t *testing.T) {
	c := Default()
	if got := c.CallTime(); got != 11*time.Minute {
		t.Errorf("got %v by default, want the 10 minutes of a question and the 30 seconds of a run, in minutes", got)
	}
	c.Limits.Calls.ApprovalTimeout, c.Sandbox.Timeout = 2*time.Hour, 5*time.Minute
	if got := c.CallTime(); got != 125*time.Minute {
		t.Errorf("got %v for questions of two hours and runs of five minutes, want 2h5m", got)
	}
}

func TestDurationsOfDays(t *testing.T) {
	for text, want := range map[string]time.Duration{"7d": 168 * time.Hour, "1m30s": 90 * time.Second} {
		if got, err := parseDuration(text); err != nil || got != want {
			t.Errorf("%q: got %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"d", "-1d", "1.5d", "7days", "1d2h", "99999999d"} {
		if got, err := parseDuration(text); err == nil {
			t.Errorf("%q: got %v, want an error", text, got)
		}
	}
}
