package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"

	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/images"
	"github.com/airlock-mcp/airlock/internal/cleanup"
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
	if _, err := v.load(s.out); err != nil { // prints what is odd about it
		fmt.Fprintln(s.err, "airlock: the configuration has a mistake; the checks that need it fail")
	}
	failed := 0
	for _, c := range v.checks() {
		found, err := c.run(ctx)
		if err != nil {
			failed++
			printFinding(s.out, "FAIL", c.name, advise(err))
			continue
		}
		fmt.Fprintf(s.out, "ok    %-14s %s\n", c.name, found)
	}
	if failed > 0 {
		fmt.Fprintf(s.out, "\n%d of %d checks failed: no code runs here before they pass.\n", failed, len(v.checks()))
		return exitError(ExitFailed)
	}
	fmt.Fprintln(s.out, "\nThis machine can run sandboxes.")
	if v.Contract {
		return v.proveContract(ctx, s)
	}
	return nil
}

func printFinding(out io.Writer, word, name string, err error) {
	fmt.Fprintf(out, "%-5s %-14s %v\n", word, name, err)
	var advised interface{ Hint() string }
	if errors.As(err, &advised) && advised.Hint() != "" {
		fmt.Fprintf(out, "      %-14s hint: %s\n", "", advised.Hint())
	}
}

func (v *doctorVerb) checks() []check {
	checks := []check{
		{"configuration", v.configuration},
		{"state directory", stateDirectory},
		{"programs", v.programs},
	}
	for _, definition := range images.List() {
		checks = append(checks, check{"image " + definition.Name, func(ctx context.Context) (string, error) {
			return imageIntact(ctx, definition.Name)
		}})
	}
	return append(checks,
		check{"sandbox", v.sandbox},
		check{"servers", v.commands},
		check{"credentials", v.credentials},
	)
}

func (v *doctorVerb) configuration(context.Context) (string, error) {
	c, err := v.load(io.Discard)
	if err != nil {
		return "", err
	}
	if c.File == "" {
		return "none found: the built-in one has no servers", nil
	}
	return fmt.Sprintf("%s, %d servers", c.File, len(c.Servers)), nil
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
func (v *doctorVerb) programs(ctx context.Context) (string, error) {
	c, err := v.load(io.Discard)
	if err != nil {
		return "", err
	}
	if _, err := newDriver(ctx, c, slog.New(slog.DiscardHandler)); err != nil {
		return "", err
	}
	path, err := findRunsc()
	if err == nil && c.Sandbox.Driver == ctrd.Name {
		path += " by way of containerd at " + c.Sandbox.Containerd.Address
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
func (v *doctorVerb) sandbox(ctx context.Context) (_ string, err error) {
	c, err := v.load(io.Discard)
	if err != nil {
		return "", err
	}
	quiet := slog.New(slog.DiscardHandler)
	driver, err := newDriver(ctx, c, quiet)
	if err != nil {
		return "", err
	}
	if err := driver.Check(ctx); err != nil {
		return "", err
	}
	if err := prove(ctx, c, quiet); err != nil {
		return "", err
	}
	if lack := driver.Unenforced(); lack != nil {
		return fmt.Sprintf("starts in gVisor, but %v", lack), nil
	}
	return "starts in gVisor with every limit in force", nil
}

// prove makes the self-test that comes before every sandbox that is used.
func prove(ctx context.Context, c *config.Config, logger *slog.Logger) (err error) {
	home, err := store.Home(os.Getenv)
	if err != nil {
		return err
	}
	var undo cleanup.Stack
	defer func() { err = errors.Join(err, undo.Run()) }()
	opened, err := openImages(home, &undo)
	if err != nil {
		return err
	}
	sandboxes, err := openRunner(ctx, c, home, opened, false, logger)
	if err != nil {
		return err
	}
	undo.Add(func() error { return closeRunner(ctx, sandboxes) })
	return sandboxes.Prove(ctx)
}

// commands looks for the programs of the configured servers without starting
// them: starting may cost money or change something.
func (v *doctorVerb) commands(context.Context) (string, error) {
	c, err := v.load(io.Discard)
	if err != nil {
		return "", err
	}
	for _, server := range c.Servers {
		if server.Command == "" {
			continue
		}
		if _, err := exec.LookPath(server.Command); err != nil {
			return "", &hinted{fmt.Errorf("the program %q of the server %q is not in PATH", server.Command, server.ID), installHint(server.Command), ExitFailed}
		}
	}
	return fmt.Sprintf("the programs of all %d are there", len(c.Servers)), nil
}

// credentials looks up each one that the configuration names by reference; none
// is shown.
func (v *doctorVerb) credentials(ctx context.Context) (string, error) {
	c, err := v.load(io.Discard)
	if err != nil {
		return "", err
	}
	if err := resolveSecrets(ctx, c); err != nil {
		return "", err
	}
	return "all that the configuration names are there", nil
}

// installHint says where a missing program comes from.
func installHint(program string) string {
	switch program {
	case "npx", "npm", "node":
		return "install Node.js 20 or newer: apt-get install nodejs npm"
	case "uvx", "uv":
		return "install uv, which brings uvx"
	}
	return "install it, or write its full path as `command`"
}
