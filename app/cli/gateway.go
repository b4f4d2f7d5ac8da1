package cli

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"

	"github.com/alecthomas/kong"

	"github.com/airlock-mcp/airlock/app/daemon"
	"github.com/airlock-mcp/airlock/app/server"
	face "github.com/airlock-mcp/airlock/app/server/gateway"
	"github.com/airlock-mcp/airlock/app/system"
	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/verify/gateway"
)

// gatewayVerb is the whole command line of qwed-mcp.
type gatewayVerb struct {
	ShowVersion kong.VersionFlag `name:"version" help:"Print the version."`
	configFlag
}

// GatewayMain runs the command line of qwed-mcp and returns the process's exit code.
// stdout carries the protocol and nothing else. Cancelling ctx ends what runs.
func GatewayMain(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	return runVerbless(ctx, &gatewayVerb{}, "qwed-mcp",
		"Serve an agent host over stdin and stdout that proves claims by running Python, by Airlock: each call passes a risk gateway, programs run in a gVisor sandbox. Nothing runs unless "+gateway.Switch+"=true.",
		args, stdin, stdout, stderr)
}

func (v *gatewayVerb) run(ctx context.Context, s *streams) error {
	return attendGateway(ctx, s, v.configFlag)
}

// attendGateway serves one host over stdio with the face of the risk gateway. What the
// administrator has set is in the environment. The configured servers are not started:
// programs have no tools.
func attendGateway(ctx context.Context, s *streams, f configFlag) error {
	snapshot, err := catalog.NewSnapshot(nil)
	if err != nil {
		return err
	}
	token, err := agentToken()
	if err != nil {
		return err
	}
	_, logger, end, err := beginExport(ctx, newLogger(s.err, false, slog.LevelWarn), false)
	if err != nil {
		return err
	}
	defer end()
	opened, err := f.open(ctx, s.err, system.Options{
		Serving: true, Host: os.Getppid(), Fixed: &system.Fixed{Snapshot: snapshot, Upstream: noServers{}}, Logger: logger,
	})
	if err != nil {
		return err
	}
	agent, err := agentIn(ctx, opened, token)
	if err != nil {
		return errors.Join(err, opened.Close())
	}
	served := serveGateway(ctx, s, opened, agent.local)
	return errors.Join(served, agent.close(), opened.Close())
}

func serveGateway(ctx context.Context, s *streams, opened *system.System, local server.Local) error {
	if path := os.Getenv(system.SkillManifestVariable); path != "" {
		if err := opened.CheckSkill(ctx, path); err != nil {
			return failedStart(err)
		}
	}
	parts, err := opened.OpenGateway(ctx, gateway.IsTrusted(os.Getenv(gateway.Switch)))
	if err != nil {
		return err
	}
	served, err := face.New(face.Parts{Decider: parts.Decider, Runs: opened.Runs(), Jobs: parts.Jobs}, face.Options{
		Version: version, Principal: system.Principal(), Local: local, BackgroundTimeout: face.ParseBackground(os.Getenv(face.BackgroundVariable)),
		Logger: opened.Logger(), Gate: opened.Gate(),
	})
	if err != nil {
		return err
	}
	err = served.Serve(ctx, s.in, s.out)
	served.Close()
	return err
}

// gatewaySettings are what the administrator has set in the environment.
func gatewaySettings() daemon.Gateway {
	return daemon.Gateway{
		Trusted: gateway.IsTrusted(os.Getenv(gateway.Switch)), Background: face.ParseBackground(os.Getenv(face.BackgroundVariable)), Manifest: os.Getenv(system.SkillManifestVariable),
	}
}

// failedStart is an error of a check that did not pass, in place of one of usage.
func failedStart(err error) error {
	var advised interface{ Hint() string }
	if errors.As(err, &advised) {
		return &hinted{errors.New(err.Error()), advised.Hint(), ExitFailed}
	}
	return err
}
