package agents

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/airlock-mcp/airlock/admission/agents"
	"github.com/airlock-mcp/airlock/app/access"
	"github.com/airlock-mcp/airlock/app/cli/verb"
	"github.com/airlock-mcp/airlock/app/setup"
	"github.com/airlock-mcp/airlock/internal/strictjson"
	"github.com/airlock-mcp/airlock/kernel/iatp"
)

// agentsTrustVerbs are the verbs about signals, and about trust between agents.
type agentsTrustVerbs struct {
	Signal     agentsSignalVerb     `cmd:"" help:"Send an agent a signal: SIGSTOP, SIGCONT or SIGKILL."`
	Keys       agentsKeysVerb       `cmd:"" help:"List the keys that an agent signs with; make a new one, revoke one."`
	Manifest   agentsManifestVerb   `cmd:"" help:"Print what makes an agent known elsewhere, or say what it can do."`
	Pin        agentsPinVerb        `cmd:"" help:"Make an agent known that is registered elsewhere, by what airlock agents manifest printed there."`
	Remote     agentsRemoteVerb     `cmd:"" help:"List pinned agents; change the trust level of one, suspend, resume or unpin it."`
	Reputation agentsReputationVerb `cmd:"" help:"Show an agent's reputation, and what changed it."`
}

type agentsSignalVerb struct {
	agentsFlags
	Agent  string `arg:"" help:"The ID of an agent."`
	Signal string `arg:"" help:"SIGSTOP, SIGCONT or SIGKILL."`
}

// Run sends the signal.
func (v *agentsSignalVerb) Run(ctx context.Context, s *verb.Streams) error {
	signal := agents.Signal(v.Signal)
	status, ok := signal.Status()
	if !ok {
		return verb.Usage(fmt.Sprintf("%q is not one of SIGSTOP, SIGCONT and SIGKILL", v.Signal),
			"airlock agents signal AGENT SIGSTOP")
	}
	if status == agents.Active {
		if err := v.guarded("resuming an agent"); err != nil {
			return err
		}
	}
	return v.with(ctx, s, func(a *access.Agents) error { return a.Signal(ctx, v.Agent, signal, setup.Principal()) })
}

// trusting opens the service for trust between agents and calls do.
func (f agentsFlags) trusting(ctx context.Context, s *verb.Streams, do func(*iatp.Service) error) error {
	return f.with(ctx, s, func(a *access.Agents) error {
		trust, err := a.Trust()
		if err != nil {
			return err
		}
		return ofTrust(do(trust))
	})
}

// ofTrust adds a hint to an error about trust between agents.
func ofTrust(err error) error {
	var no *iatp.Refusal
	switch {
	case errors.As(err, &no):
		return verb.Usage(no.Text, "airlock agents list")
	case errors.Is(err, iatp.ErrNotPinned):
		return verb.Usage(err.Error(), "airlock agents remote")
	case errors.Is(err, iatp.ErrForged), errors.Is(err, iatp.ErrExpired), errors.Is(err, iatp.ErrReplayed):
		return verb.WithHint(fmt.Errorf("the manifest is not accepted: %w", err),
			"ask the agent's operator for what airlock agents manifest prints now", verb.ExitFailed)
	}
	return err
}

type agentsKeysVerb struct {
	agentsFlags
	Agent  string `arg:"" help:"The ID of an agent."`
	Rotate bool   `help:"Make a new key, which signs from now on."`
	Revoke string `placeholder:"KEY" help:"Invalidate everything that this key has signed."`
	JSON   bool   `name:"json" help:"Print JSON."`
}

// Run lists keys, after it has made or revoked one.
func (v *agentsKeysVerb) Run(ctx context.Context, s *verb.Streams) error {
	return v.trusting(ctx, s, func(trust *iatp.Service) error {
		if v.Revoke != "" {
			if err := trust.Revoke(ctx, v.Agent, v.Revoke, setup.Principal()); err != nil {
				return err
			}
		}
		if v.Rotate {
			if _, err := trust.Rotate(ctx, v.Agent, setup.Principal()); err != nil {
				return err
			}
		}
		keys, err := trust.Keys(ctx, v.Agent)
		if err == nil && len(keys) == 0 {
			_, err = trust.Reputation(ctx, v.Agent) // an error means that there is no such agent
		}
		if err != nil {
			return err
		}
		if v.JSON {
			return verb.PrintLine(s.Out, map[string]any{"keys": keys})
		}
		if len(keys) == 0 {
			_, err := fmt.Fprintln(s.Err, "airlock: the agent has no key yet: it gets one when it first signs")
			return err
		}
		return verb.Paged(s, func(w io.Writer) error {
			var t verb.Table
			for _, key := range keys {
				state, style := "until "+key.Expires.Format(time.DateOnly), verb.Plain
				if key.Revoked != nil {
					state, style = "revoked "+key.Revoked.Format(time.DateOnly), verb.Red
				}
				t.Add(verb.Text(key.ID, verb.Plain), verb.Text("from "+key.Created.Format(time.DateOnly), verb.Dim),
					verb.Text(state, style))
			}
			return t.Write(w)
		})
	})
}

type agentsManifestVerb struct {
	agentsFlags
	Agent         string   `arg:"" help:"The ID of an agent."`
	Scope         []string `placeholder:"NAME" help:"A scope that the agent has, such as repo:read; may be repeated."`
	Retention     string   `placeholder:"WORD" help:"How long it keeps data: ephemeral, session or permanent."`
	Reversibility string   `placeholder:"WORD" help:"What of its work can be taken back: full, partial or none."`
	Level         string   `placeholder:"LEVEL" help:"How far you trust it: verified_partner, trusted, standard, unknown or untrusted; by default as its type says."`
}

// Run stores a new manifest if a flag is given, and prints the manifest with the agent's keys.
// `airlock agents pin` reads this output on another machine.
func (v *agentsManifestVerb) Run(ctx context.Context, s *verb.Streams) error {
	changes := len(v.Scope) > 0 || v.Retention != "" || v.Reversibility != "" || v.Level != ""
	if changes {
		if err := v.guarded("changing what an agent can do"); err != nil {
			return err
		}
	}
	return v.trusting(ctx, s, func(trust *iatp.Service) error {
		if changes {
			m := iatp.Manifest{Agent: v.Agent, Scopes: v.Scope, Retention: v.Retention, Reversibility: v.Reversibility}
			if m.Retention == "" {
				m.Retention = "permanent"
			}
			if m.Reversibility == "" {
				m.Reversibility = "none"
			}
			if err := trust.SetManifest(ctx, m, iatp.Level(v.Level), setup.Principal()); err != nil {
				return err
			}
		}
		offer, err := trust.Offer(ctx, v.Agent)
		if err != nil {
			return err
		}
		return verb.PrintLine(s.Out, offer)
	})
}

type agentsPinVerb struct {
	agentsFlags
	File  string `arg:"" help:"The file with the manifest and the keys, - for stdin, or the https address at which its operator publishes them."`
	Level string `default:"standard" placeholder:"LEVEL" help:"How far you trust it: verified_partner, trusted, standard, unknown or untrusted."`
}

// Run pins a remote agent and prints its ID.
func (v *agentsPinVerb) Run(ctx context.Context, s *verb.Streams) error {
	pinned, err := v.read(ctx, s)
	if err != nil {
		return err
	}
	if err := v.guarded("pinning an agent"); err != nil {
		return err
	}
	return v.trusting(ctx, s, func(trust *iatp.Service) error {
		id, err := trust.Pin(ctx, pinned, iatp.Level(v.Level), setup.Principal())
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(s.Out, id)
		return err
	})
}

// read returns the agent to pin.
func (v *agentsPinVerb) read(ctx context.Context, s *verb.Streams) (pinned iatp.Pinned, _ error) {
	if strings.Contains(v.File, "://") {
		pinned, err := iatp.Fetch(ctx, v.File)
		if refused, ok := errors.AsType[*iatp.Refusal](err); ok {
			err = verb.Usage(refused.Error(), "airlock agents pin https://HOST"+iatp.ManifestPath+"AGENT")
		}
		return pinned, err
	}
	in := s.In
	if v.File != "-" {
		file, err := os.Open(v.File)
		if err != nil {
			return pinned, verb.Usage(err.Error(), "airlock agents pin FILE")
		}
		defer file.Close() // it is only read
		in = file
	}
	raw, err := io.ReadAll(io.LimitReader(in, iatp.MaxPinned+1))
	if err != nil {
		return pinned, fmt.Errorf("reading %q: %w", v.File, err)
	}
	if len(raw) > iatp.MaxPinned || strictjson.UnmarshalOpen(raw, &pinned) != nil {
		return pinned, verb.Usage(fmt.Sprintf("%q is not what airlock agents manifest prints", v.File),
			"airlock agents manifest AGENT > agent.json, where the agent is registered")
	}
	return pinned, nil
}

type agentsRemoteVerb struct {
	agentsFlags
	Agent   string  `arg:"" optional:"" help:"The ID of a pinned agent."`
	Level   *string `xor:"change" placeholder:"LEVEL" help:"Trust it so far: verified_partner, trusted, standard, unknown or untrusted."`
	Suspend bool    `xor:"change" help:"Let every verification of it fail until it is resumed."`
	Resume  bool    `xor:"change" help:"End its suspension."`
	Unpin   bool    `xor:"change" help:"Forget its manifest and its keys. Its reputation stays."`
	JSON    bool    `name:"json" help:"Print JSON."`
}

// Run changes one pinned agent if a flag is given, and lists pinned agents.
func (v *agentsRemoteVerb) Run(ctx context.Context, s *verb.Streams) error {
	changes := v.Level != nil || v.Suspend || v.Resume || v.Unpin
	if changes && v.Agent == "" {
		return verb.Usage("AGENT is missing", "airlock agents remote AGENT --suspend")
	}
	if v.Level != nil || v.Resume {
		if err := v.guarded("trusting a pinned agent"); err != nil {
			return err
		}
	}
	return v.trusting(ctx, s, func(trust *iatp.Service) error {
		all, err := v.change(ctx, trust)
		if err != nil {
			return err
		}
		if v.JSON {
			return verb.PrintLine(s.Out, map[string]any{"agents": all})
		}
		return verb.Paged(s, func(w io.Writer) error {
			var t verb.Table
			for _, r := range all {
				state, style := "pinned", verb.Plain
				if r.Suspended {
					state, style = "suspended", verb.Red
				}
				t.Add(verb.Text(r.Agent, verb.Plain), verb.Text(string(r.Level), verb.Plain),
					verb.Text("reputation "+r.Reputation.String(), verb.Dim), verb.Text(state, style))
			}
			return t.Write(w)
		})
	})
}

// change makes the change of the flags and returns the agents to list.
func (v *agentsRemoteVerb) change(ctx context.Context, trust *iatp.Service) ([]iatp.Remote, error) {
	var c iatp.RemoteChange
	switch {
	case v.Agent == "":
		return trust.Remotes(ctx, "", -1)
	case v.Unpin:
		return nil, trust.Unpin(ctx, v.Agent, setup.Principal())
	case v.Level != nil:
		c.Level = (*iatp.Level)(v.Level)
	case v.Suspend, v.Resume:
		c.Suspended = &v.Suspend
	default:
		found, err := trust.Remote(ctx, v.Agent)
		return []iatp.Remote{found}, err
	}
	changed, err := trust.ChangeRemote(ctx, v.Agent, c, setup.Principal())
	return []iatp.Remote{changed}, err
}

type agentsReputationVerb struct {
	agentsFlags
	verb.PeriodFlags `set:"dated=happened"`
	Agent            string `arg:"" help:"The ID of an agent."`
	Lines            int    `short:"n" default:"20" help:"How many of the newest events."`
	JSON             bool   `name:"json" help:"Print JSON."`
}

// Run shows the score and the newest events.
func (v *agentsReputationVerb) Run(ctx context.Context, s *verb.Streams) error {
	if v.Lines < 0 || v.Lines > agents.MaxActivity {
		return verb.Usage(fmt.Sprintf("-n must be a number of events from 0 to %d", agents.MaxActivity),
			"airlock agents reputation AGENT -n 20")
	}
	period, err := v.Period()
	if err != nil {
		return err
	}
	return v.trusting(ctx, s, func(trust *iatp.Service) error {
		r, err := trust.Reputation(ctx, v.Agent)
		if err != nil {
			return err
		}
		events, err := trust.History(ctx, v.Agent, period, v.Lines)
		if err != nil {
			return err
		}
		if v.JSON {
			return verb.PrintLine(s.Out, struct {
				iatp.Reputation
				Events []iatp.Event `json:"events"`
			}{r, events})
		}
		return verb.Paged(s, func(w io.Writer) error {
			var t verb.Table
			t.Add(verb.Text("score", verb.Dim),
				verb.Text(fmt.Sprintf("%s (%s)", r.Score, strings.ReplaceAll(string(r.Level), "_", " ")), verb.Plain))
			for _, e := range events {
				t.Add(verb.Text(verb.ShortBegan(e.Time.Format(time.RFC3339Nano)), verb.Dim),
					verb.Text(verb.OneLine(fmt.Sprintf("%s  %s  by %s: %s", e.Change, e.Severity, e.By, e.Reason), 160),
						verb.Plain))
			}
			return t.Write(w)
		})
	})
}
