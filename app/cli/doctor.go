package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/app/system"
	"github.com/airlock-mcp/airlock/images"
	"github.com/airlock-mcp/airlock/internal/store"
	"github.com/airlock-mcp/airlock/runner/ctrd"
)

type doctorVerb struct {
	configFlag
	Contract bool `help:"Prove the runtime contract too: run its cases in real sandboxes and print a table."`
}

// check is one thing that a machine must have. It returns what it found, or
// what is wrong.
type check struct {
	name string
	run  func(context.Context) (string, error)
}

// Run makes every check, prints what it found, and fails where one failed.
func (v *doctorVerb) Run(ctx context.Context, s *streams) error {
	configured, unreadable := v.load(s.out) // prints what is odd about it
	examination := &examination{config: configured, unreadable: unreadable}
	checks, failed := examination.checks(), 0
	for _, c := range checks {
		found, err := c.run(ctx)
		if err != nil {
			failed++
			printFinding(s.out, "FAIL", c.name, system.Advise(err))
			continue
		}
		fmt.Fprintf(s.out, "ok    %-14s %s\n", c.name, found)
	}
	if failed > 0 {
		fmt.Fprintf(s.out, "\n%d of %d checks failed: no code runs here before they pass.\n", failed, len(checks))
		return exitError(ExitFailed)
	}
	fmt.Fprintln(s.out, "\nThis machine can run sandboxes.")
	if v.Contract {
		return v.proveContract(ctx, configured, s)
	}
	return nil
}

// examination is the checks of one configuration.
type examination struct {
	config     *config.Config // nil where it is unreadable
	unreadable error
}

func printFinding(out io.Writer, word, name string, err error) {
	fmt.Fprintf(out, "%-5s %-14s %v\n", word, name, err)
	var advised interface{ Hint() string }
	if errors.As(err, &advised) && advised.Hint() != "" {
		fmt.Fprintf(out, "      %-14s hint: %s\n", "", advised.Hint())
	}
}

// checks returns those that can be made: without a configuration those that
// need none.
func (e *examination) checks() []check {
	checks := []check{
		{"configuration", e.configuration},
		{"state directory", stateDirectory},
	}
	for _, definition := range images.List() {
		checks = append(checks, check{"image " + definition.Name, func(ctx context.Context) (string, error) {
			return imageIntact(ctx, definition.Name)
		}})
	}
	if e.config == nil {
		return checks
	}
	return append(checks,
		check{"programs", e.programs},
		check{"sandbox", e.sandbox},
		check{"servers", e.commands},
		check{"credentials", e.credentials},
	)
}

func (e *examination) configuration(context.Context) (string, error) {
	switch {
	case e.unreadable != nil:
		return "", e.unreadable
	case e.config.File == "":
		return "none found: the built-in one has no servers", nil
	}
	return fmt.Sprintf("%s, %d servers", e.config.File, len(e.config.Servers)), nil
}

func stateDirectory(context.Context) (string, error) {
	home, err := store.Home(os.Getenv)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(home, 0o755); err != nil {
		return "", fmt.Errorf("the state directory cannot be made: %w", err)
	}
	return home, nil
}

// programs looks for the right version of what makes sandboxes.
func (e *examination) programs(ctx context.Context) (string, error) {
	path, err := system.FindPrograms(ctx, e.config)
	if err == nil && e.config.Sandbox.Driver == ctrd.Name {
		path += " by way of containerd at " + e.config.Sandbox.Containerd.Address
	}
	return path, err
}

// imageIntact reads the whole image and compares it with what was built.
func imageIntact(ctx context.Context, name string) (string, error) {
	home, err := store.Home(os.Getenv)
	if err != nil {
		return "", err
	}
	image, err := images.Open(home, name)
	if err != nil {
		return "", err
	}
	if err := errors.Join(images.Verify(ctx, image), image.Close()); err != nil {
		return "", err
	}
	return image.Digest, nil
}

// sandbox starts one, which proves all that is needed for it.
func (e *examination) sandbox(ctx context.Context) (string, error) {
	unenforced, err := system.ProveSandbox(ctx, e.config)
	switch {
	case err != nil:
		return "", err
	case unenforced != nil:
		return fmt.Sprintf("starts in gVisor, but %v", unenforced), nil
	}
	return "starts in gVisor with every limit in force", nil
}

// commands looks for the programs of the configured servers without starting
// them: starting may cost money or change something.
func (e *examination) commands(context.Context) (string, error) {
	for _, server := range e.config.Servers {
		if server.Command == "" {
			continue
		}
		if _, err := exec.LookPath(server.Command); err != nil {
			return "", &hinted{fmt.Errorf("the program %q of the server %q is not in PATH", server.Command, server.ID), system.InstallHint(server.Command), ExitFailed}
		}
	}
	return fmt.Sprintf("the programs of all %d are there", len(e.config.Servers)), nil
}

// credentials looks up each one that the configuration names by reference, and
// lists what is held; no value is shown.
func (e *examination) credentials(ctx context.Context) (string, error) {
	resolved, err := system.ResolveSecrets(ctx, e.config)
	if err != nil {
		return "", err
	}
	held := system.HeldCredentials(resolved)
	if len(held) == 0 {
		return "all that the configuration names are there; none is held", nil
	}
	indent := fmt.Sprintf("\n      %-14s ", "")
	return fmt.Sprintf("all that the configuration names are there; held and removed wherever they turn up:%s%s", indent, strings.Join(held, indent)), nil
}
