package policy

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/airlock-mcp/airlock/app/cli/approvals"
	"github.com/airlock-mcp/airlock/app/cli/verb"
	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/app/configfile"
	"github.com/airlock-mcp/airlock/app/credentials"
	"github.com/airlock-mcp/airlock/app/hosts"
	"github.com/airlock-mcp/airlock/app/rules"
	"github.com/airlock-mcp/airlock/app/setup"
	"github.com/airlock-mcp/airlock/app/trust"
	"github.com/airlock-mcp/airlock/internal/store"
	"github.com/airlock-mcp/airlock/internal/visible"
)

// Trust is airlock trust.
type Trust struct {
	File   string `arg:"" optional:"" help:"The configuration, or the directory that contains it as airlock.yaml; by default the one that a command would use."`
	Yes    bool   `short:"y" help:"Do not ask. While agents are served it still needs a person's terminal."`
	Forget bool   `help:"Take the confirmation back."`
	JSON   bool   `name:"json" help:"Print JSON; nothing is asked, and without --yes nothing is confirmed."`
}

// Run shows a configuration, or its differences from the confirmed one, and confirms it if the
// person agrees.
func (v *Trust) Run(ctx context.Context, s *verb.Streams) error {
	path, err := v.path()
	if err != nil {
		return err
	}
	if v.Forget {
		return v.forget(ctx, s, path)
	}
	c, err := config.Load(path, config.LookupOrUnset)
	if err != nil {
		return setup.Advise(err)
	}
	credentials.HoldPrinted(c)
	k, err := rules.NewConfirmation(c)
	if err != nil {
		return setup.Advise(err)
	}
	if !v.JSON {
		if err := showConfirmation(s.Err, c, k); err != nil {
			return err
		}
	}
	done := k.IsDone()
	if !done {
		agreed := v.Yes
		if !agreed && !v.JSON {
			if agreed, err = approvals.AgreesTo(ctx, "Confirm this configuration?"); err != nil {
				return err
			}
		}
		if agreed {
			if err := verb.GuardedIn(c, "confirming a configuration"); err != nil {
				return err
			}
			if err := k.Confirm(ctx); err != nil {
				return err
			}
		}
		done = agreed
	}
	if v.JSON {
		report := map[string]any{"file": k.After.File, "digest": k.After.Digest(), "confirmed": done,
			"widens": append([]string{}, verb.CleanAll(k.Why)...)}
		if k.IsKnown {
			report["difference"] = k.Difference()
		}
		return verb.PrintLine(s.Out, report)
	}
	if !done {
		fmt.Fprintln(s.Err, "airlock: nothing was confirmed")
		return verb.ExitError(verb.ExitFailed)
	}
	_, err = fmt.Fprintf(s.Out, "confirmed %s %s\n", k.After.File, k.After.Digest())
	return err
}

// path returns the absolute path of the configuration.
func (v *Trust) path() (string, error) {
	directory, err := os.Getwd()
	if err != nil {
		return "", err
	}
	path := v.File
	if path == "" {
		if path = configfile.Find(directory, os.LookupEnv); path == "" {
			return "", verb.Usage("no configuration was found", "airlock trust FILE")
		}
	} else if info, err := os.Stat(path); err == nil && info.IsDir() {
		path = filepath.Join(path, configfile.Name)
	}
	return filepath.Abs(path)
}

func (v *Trust) forget(ctx context.Context, s *verb.Streams, path string) error {
	home, err := store.Home(os.Getenv)
	if err != nil {
		return err
	}
	known, err := trust.Open(home).Forget(path)
	if err != nil {
		return err
	}
	if !known {
		return verb.Usage(fmt.Sprintf("%q is not confirmed", path), "airlock trust FILE")
	}
	if c, err := config.Load(path, config.LookupOrUnset); err == nil { // a file that is gone has no cluster
		if err := rules.ForgetShared(ctx, c); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(s.Out, "forgot %s\n", path)
	return err
}

// showConfirmation writes what a configuration starts, connects to and permits, and its
// differences from the confirmed one.
func showConfirmation(w io.Writer, c *config.Config, k *rules.Confirmation) error {
	var out strings.Builder
	line := func(format string, args ...any) {
		fmt.Fprintf(&out, "%s\n", visible.Line(verb.Clean(verb.OneLine(fmt.Sprintf(format, args...), 400))))
	}
	line("%s", k.After.File)
	for _, server := range c.Servers {
		entry := hosts.Entry{Command: server.Command, Args: server.Args, Cwd: server.Cwd, URL: server.URL,
			Env: map[string]string{}}
		for name := range server.Env {
			entry.Env[name] = ""
		}
		line("  %s %s", server.ID, entry.Start())
		if allow := server.Settings.Allow; len(allow) > 0 {
			line("    allowed without asking: %s", strings.Join(allow, ", "))
		}
		if server.Settings.TrustAnnotations {
			line("    its own hints about risk are believed")
		}
	}
	for _, policy := range c.Policies {
		line("  policies of %s", policy)
	}
	if difference := k.Difference(); k.IsKnown && difference != "" {
		out.WriteString("\n" + difference + "\n")
		for _, why := range k.Why {
			line("may permit more: %s", why)
		}
	}
	_, err := io.WriteString(w, out.String())
	return err
}
