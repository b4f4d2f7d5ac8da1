package doctor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/airlock-mcp/airlock/app/cli/verb"
	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/app/contained"
	"github.com/airlock-mcp/airlock/app/credentials"
	"github.com/airlock-mcp/airlock/app/daemon"
	"github.com/airlock-mcp/airlock/app/sandboxes"
	"github.com/airlock-mcp/airlock/app/setup"
	"github.com/airlock-mcp/airlock/app/state"
	"github.com/airlock-mcp/airlock/app/upstreams"
	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/images"
	"github.com/airlock-mcp/airlock/internal/store"
	"github.com/airlock-mcp/airlock/runner/ctrd"
)

// check is one requirement of the machine. run returns what it found, or an error: a sentence,
// or a list with one line per item.
type check struct {
	name string
	// needs names checks. If one of them fails, this check is skipped.
	needs []string
	// needsOne names checks. If all of them fail, this check is skipped.
	needsOne []string
	blocks   bool // no code can run if it fails or is skipped
	run      func(context.Context) (string, error)
}

// Examination makes the checks of one configuration, which is loaded once.
type Examination struct {
	Config     *config.Config // nil if it cannot be read
	Unreadable error

	startsServers bool // each server is started and has a separate check
}

// The names of checks that others need.
const (
	checkConfiguration = "configuration"
	checkState         = "state directory"
	checkPrograms      = "programs"
)

// checks returns all checks in order.
func (e *Examination) checks() []check {
	configured := []string{checkConfiguration}
	checks := []check{
		{name: checkConfiguration, blocks: true, run: e.configuration},
		{name: checkState, blocks: true, run: stateDirectory},
		{name: checkPrograms, needs: configured, blocks: true, run: e.programs},
	}
	var languages []string // the checks of images, one of which must pass
	for _, definition := range images.List() {
		name := "image " + definition.Name
		runsCode := definition.Language != ""
		if runsCode {
			languages = append(languages, name)
		}
		checks = append(checks, check{name: name, needs: []string{checkState},
			run: func(ctx context.Context) (string, error) {
				found, err := e.imageIntact(ctx, definition)
				switch {
				case err == nil:
				case runsCode:
					err = fmt.Errorf("no program can run in the language %q: %w", definition.Language, err)
				case errors.Is(err, images.ErrNotBuilt):
					return "not built: `airlock images build " + definition.Name +
						"` does that, for who verifies claims", nil
				}
				return found, err
			}})
	}
	if e.Config != nil && (e.Config.Embeddings.URL != "" || e.Config.Embeddings.Table != "") {
		checks = append(checks, check{name: "embeddings", needs: configured, run: e.embeddings})
	}
	if e.Config != nil && slices.ContainsFunc(e.Config.Servers, config.Server.SignsIn) {
		checks = append(checks, check{name: "sign-ins", needs: configured, run: e.signIns})
	}
	if e.Config != nil && e.Config.Cluster.Database != "" {
		checks = append(checks, check{name: "cluster", needs: configured, run: e.cluster})
	}
	return append(checks,
		check{name: "sandbox", needs: []string{checkConfiguration, checkState, checkPrograms}, needsOne: languages,
			blocks: true, run: e.sandbox},
		check{name: "audit log", needs: configured, run: e.auditLog},
		check{name: "servers", needs: configured, run: e.commands},
		check{name: "credentials", needs: configured, blocks: true, run: e.credentials},
		check{name: "within reach", run: withinReach},
	)
}

// noted is the error of a check with a remark. The check does not count as failed.
type noted struct{ text, hint string }

// Error implements error.
func (n *noted) Error() string { return n.text }

// withinReach reports sockets of container engines and tokens of clusters that this user can
// use. Servers run as this user on this machine, so they can use them too.
func withinReach(context.Context) (string, error) {
	if found := config.InReach("/", os.Environ()); len(found) > 0 {
		return "", &noted{
			"every program that this user starts, servers too, can use " + strings.Join(found, ", "),
			"an engine's socket makes it root on this machine, a cluster's token lets it act in the cluster: run " +
				"Airlock where neither is, unless a server needs it"}
	}
	return "no container engine's socket and no cluster's token", nil
}

func (e *Examination) configuration(context.Context) (string, error) {
	switch {
	case e.Unreadable != nil:
		return "", e.Unreadable
	case e.Config.File == "":
		return "none found: the built-in one has no servers", nil
	}
	return fmt.Sprintf("%s, %s", e.Config.File, verb.Counted(len(e.Config.Servers), "server")), nil
}

// cluster uses the database and the object store of the cluster.
func (e *Examination) cluster(ctx context.Context) (string, error) {
	nodes, err := state.Nodes(ctx, e.Config)
	if err != nil {
		return "", err
	}
	text := "the database answers, and has " + verb.Counted(len(nodes), "node")
	if e.Config.Cluster.Objects == "" {
		return text, nil
	}
	return text + "; objects can be stored and read", state.ProbeObjects(ctx, e.Config.Cluster)
}

func stateDirectory(context.Context) (string, error) {
	home, err := store.Home(os.Getenv)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(home, 0o711); err != nil {
		return "", fmt.Errorf("the state directory cannot be made: %w", err)
	}
	return home, nil
}

// programs looks for the programs that create sandboxes, in the right versions.
func (e *Examination) programs(ctx context.Context) (string, error) {
	path, err := sandboxes.FindPrograms(ctx, e.Config)
	if err == nil && e.Config.Sandbox.Driver == ctrd.Name {
		path += " by way of containerd at " + e.Config.Sandbox.Containerd.Address
	}
	return path, err
}

// imageIntact reads the whole image and compares it with the digests of the build.
func (e *Examination) imageIntact(ctx context.Context, definition images.Definition) (string, error) {
	home, err := store.Home(os.Getenv)
	if err != nil {
		return "", err
	}
	c := e.Config
	if c == nil {
		c = config.Default()
	}
	image, err := verb.OpenConfigured(c, home, definition)
	if err != nil {
		return "", err
	}
	if err := errors.Join(images.Verify(ctx, image), image.Close()); err != nil {
		return "", err
	}
	return image.Digest, nil
}

// sandbox starts a sandbox, which proves that everything for it is installed.
func (e *Examination) sandbox(ctx context.Context) (string, error) {
	unenforced, err := sandboxes.Prove(ctx, e.Config)
	switch {
	case err != nil:
		return "", err
	case unenforced != nil:
		return fmt.Sprintf("starts in gVisor, but %v", unenforced), nil
	}
	return "starts in gVisor with every limit in force", nil
}

// auditLog verifies the hash chain and the signatures of the whole log.
func (e *Examination) auditLog(context.Context) (string, error) {
	directories, err := setup.FindDirectories(e.Config)
	if err != nil {
		return "", err
	}
	size, err := sizeOf(directories.Audit)
	if errors.Is(err, os.ErrNotExist) || err == nil && size == 0 {
		return "none yet: it begins with the first run", nil
	}
	if err != nil {
		return "", fmt.Errorf("reading the audit log: %w", err)
	}
	report, err := audit.Verify(directories.Audit, &audit.VerifyOptions{Keys: directories.Keys})
	if err != nil {
		return "", err
	}
	if !report.OK() {
		first := report.Findings[0]
		return "", verb.WithHint(fmt.Errorf("it was changed: %d findings, the first in %s: %s",
			len(report.Findings)+report.More, first.File, first.Text),
			"airlock audit verify lists them all; keep a copy of the log", verb.ExitFailed)
	}
	found := fmt.Sprintf("sound: %s, %s, signed up to number %d", verb.Counted(int(report.Records), "record"),
		verb.ShowBytes(size), report.Signed)
	if report.First > 1 {
		found += fmt.Sprintf("; records before number %d were removed (audit.keep)", report.First)
	}
	return found, nil
}

// sizeOf returns the size of the files in a directory, in bytes.
func sizeOf(dir string) (int64, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0, err
	}
	var size int64
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil && info.Mode().IsRegular() {
			size += info.Size()
		}
	}
	return size, nil
}

// commands looks for the programs of the configured servers. It does not start them, because
// that may cost money or change something.
func (e *Examination) commands(context.Context) (string, error) {
	var missing []string
	hint, programs, contained := "", 0, 0
	for _, server := range e.Config.Servers {
		if server.Command == "" {
			continue
		}
		programs++
		if server.Settings.Sandbox != nil {
			contained++ // its program is in its image
			continue
		}
		command := server.Command
		if strings.Contains(command, "/") && !filepath.IsAbs(command) && server.Cwd != "" {
			command = filepath.Join(server.Cwd, command)
		}
		if _, err := exec.LookPath(command); err != nil {
			missing = append(missing, fmt.Sprintf(
				"the program %q of the server %q is not there", server.Command, server.ID))
			hint = upstreams.InstallHint(server.Command)
		}
	}
	addresses := len(e.Config.Servers) - programs
	switch {
	case len(missing) > 0:
		return "", verb.WithHint(errors.New(strings.Join(missing, "; ")), hint, verb.ExitFailed)
	case len(e.Config.Servers) == 0:
		return "none is configured", nil
	}
	var found []string
	notStarted, notAsked, option := ", not started", " not asked", " (--servers does)"
	if e.startsServers {
		notStarted, notAsked, option = "", "", ""
	}
	if programs > 0 {
		found = append(found, verb.Counted(programs, "program")+" found"+notStarted)
		found = append(found, fmt.Sprintf("%d contained, %d with the rights of this user", contained,
			programs-contained))
	}
	if addresses > 0 {
		found = append(found, verb.Counted(addresses, "address")+notAsked)
	}
	text := strings.Join(found, ", ") + option
	for _, line := range e.sandboxes() {
		text += "\n" + line
	}
	return text, nil
}

// sandboxes returns a line for each server with a program: whether it is contained, the hosts and directories that its
// configuration gives it, and the hosts that it has connected to since the daemon started, if there is one.
func (e *Examination) sandboxes() []string {
	states, err := daemon.ServerStates()
	if err != nil {
		states = nil // without a daemon
	}
	var lines []string
	for _, server := range e.Config.Servers {
		if server.Command == "" {
			continue
		}
		box := upstreams.ContainmentOf(server)
		if box == nil {
			lines = append(lines, server.ID+": not contained, has the rights of this user")
			continue
		}
		line := server.ID + ": contained"
		if len(box.MayReach) > 0 {
			line += ", may ask for " + strings.Join(box.MayReach, " ")
		} else {
			line += ", no network"
		}
		if len(box.Mounts) > 0 {
			line += ", sees " + strings.Join(box.Mounts, " ")
		}
		for _, state := range states {
			if state.ID == server.ID && state.Contained != nil {
				line += reachedText(state.Contained.Reached)
			}
		}
		lines = append(lines, line)
	}
	return lines
}

// reachedText describes the hosts that a server has connected to, or was refused.
func reachedText(hosts []contained.Reached) string {
	var reached, refused []string
	for _, host := range hosts {
		if host.Connections > 0 {
			reached = append(reached, host.Host)
		}
		if host.Refused > 0 {
			refused = append(refused, host.Host)
		}
	}
	text := ", reached nothing"
	if len(reached) > 0 {
		text = ", reached " + strings.Join(reached, " ")
	}
	if len(refused) > 0 {
		text += ", was refused " + strings.Join(refused, " ")
	}
	return text
}

// credentials resolves each credential that the configuration references, and returns one line
// for each. It shows no values.
func (e *Examination) credentials(ctx context.Context) (string, error) {
	resolved, err := credentials.Resolve(ctx, e.Config)
	if err != nil {
		return "", err
	}
	held := credentials.Describe(resolved)
	if len(held) == 0 {
		return "all that the configuration names are there; none is held", nil
	}
	return "all that the configuration names are there; held and removed wherever they turn up:\n" +
		strings.Join(held, "\n"), nil
}
