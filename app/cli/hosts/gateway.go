package hosts

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"

	"github.com/alecthomas/kong"

	"github.com/airlock-mcp/airlock/app/cli/runs"
	"github.com/airlock-mcp/airlock/app/cli/verb"
	"github.com/airlock-mcp/airlock/app/daemon"
	"github.com/airlock-mcp/airlock/app/engines"
	"github.com/airlock-mcp/airlock/app/server"
	"github.com/airlock-mcp/airlock/app/setup"

	face "github.com/airlock-mcp/airlock/app/server/gateway"
	"github.com/airlock-mcp/airlock/app/system"
	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/verify/gateway"
)

// gatewayVerb is the whole command line of qwed-mcp.
type gatewayVerb struct {
	ShowVersion kong.VersionFlag `name:"version" help:"Print the version."`
	verb.ConfigFlag
}

// GatewayMain runs the command line of qwed-mcp and returns the exit code. stdout carries only
// the protocol. Cancelling ctx ends the server.
func GatewayMain(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	return verb.RunVerbless(ctx, &gatewayVerb{}, "qwed-mcp",
		"Serve an agent host over stdin and stdout that proves claims by running Python, by Airlock: each call "+
			"passes a risk gateway, programs run in a gVisor sandbox. Nothing runs unless "+gateway.Switch+"=true.",
		args, stdin, stdout, stderr)
}

func (v *gatewayVerb) Do(ctx context.Context, s *verb.Streams) error {
	return attendGateway(ctx, s, v.ConfigFlag)
}

// attendGateway serves one host over stdio with the tools of the risk gateway. The settings of
// the administrator are in the environment. The configured servers are not started, because
// programs get no tools.
func attendGateway(ctx context.Context, s *verb.Streams, f verb.ConfigFlag) error {
	snapshot, err := catalog.NewSnapshot(nil)
	if err != nil {
		return err
	}
	token, err := agentToken()
	if err != nil {
		return err
	}
	_, logger, end, err := verb.BeginExport(ctx, verb.NewLogger(s.Err, false, slog.LevelWarn), false)
	if err != nil {
		return err
	}
	defer end()
	opened, err := f.Open(ctx, s.Err, system.Options{
		Serving: true, Host: hostProcess(), Fixed: &system.Fixed{Snapshot: snapshot, Upstream: runs.NoServers{}},
		Logger: logger,
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

func serveGateway(ctx context.Context, s *verb.Streams, opened *system.System, local server.Local) error {
	if path := os.Getenv(engines.SkillManifestVariable); path != "" {
		if err := opened.Verify().CheckSkill(ctx, path); err != nil {
			return failedStart(err)
		}
	}
	parts, err := opened.OpenGateway(ctx, gateway.IsTrusted(os.Getenv(gateway.Switch)))
	if err != nil {
		return err
	}
	served, err := face.New(face.Parts{Decider: parts.Decider, Runs: opened.Runs(), Jobs: parts.Jobs}, face.Options{
		Version: verb.Version, Principal: setup.Principal(), Local: local,
		BackgroundTimeout: face.ParseBackground(os.Getenv(face.BackgroundVariable)),
		Logger:            opened.Logger(), Gate: opened.Gate(),
	})
	if err != nil {
		return err
	}
	err = served.Serve(ctx, s.In, s.Out)
	served.Close()
	return err
}

// GatewaySettings returns the administrator's settings in the environment.
func GatewaySettings() daemon.Gateway {
	return daemon.Gateway{
		Trusted:    gateway.IsTrusted(os.Getenv(gateway.Switch)),
		Background: face.ParseBackground(os.Getenv(face.BackgroundVariable)),
		Manifest:   os.Getenv(engines.SkillManifestVariable),
	}
}

// failedStart gives an error with a hint the exit code ExitFailed. Without it, a start that fails
// because of a setting would exit with the code of wrong usage.
func failedStart(err error) error {
	var advised interface{ Hint() string }
	if errors.As(err, &advised) {
		return verb.WithHint(errors.New(err.Error()), advised.Hint(), verb.ExitFailed)
	}
	return err
}
