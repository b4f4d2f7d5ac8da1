package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/airlock-mcp/airlock/app/cli/servers"
	"github.com/airlock-mcp/airlock/app/cli/verb"
	"github.com/airlock-mcp/airlock/app/credentials"
	"github.com/airlock-mcp/airlock/app/state"
	"github.com/airlock-mcp/airlock/internal/visible"
)

// signIns returns the state of the stored sign-ins, one line each. A server without a sign-in is
// not a failure here, because it may not need one; --servers finds out.
func (e *Examination) signIns(ctx context.Context) (string, error) {
	resolved, err := credentials.Resolve(ctx, e.Config)
	if err != nil {
		return "", err
	}
	var lines, over []string
	signedIn, first := 0, ""
	states, err := state.SignInStates(resolved, verb.Version)
	if err != nil {
		return "", err
	}
	for _, state := range states {
		report := servers.LoggedIn{ServerID: state.ServerID, SignedIn: state.IsSignedIn, Wanted: state.Wanted,
			Problem: state.Over}
		report.Take(state.SignedIn)
		switch {
		case state.Problem != "":
			return "", verb.WithHint(errors.New(state.Problem),
				fmt.Sprintf("airlock logout %s forgets it; then sign in again", visible.Word(state.ServerID)),
				verb.ExitFailed)
		case state.IsSignedIn:
			signedIn++
			lines = append(lines, state.ServerID+": "+report.Words())
			if len(state.Wanted) == 0 {
				continue
			}
		case state.Over == "":
			continue
		}
		if first == "" {
			first = state.ServerID
		}
		over = append(over, state.ServerID+": "+report.Words())
	}
	switch {
	case len(over) > 0:
		return "", &noted{strings.Join(over, "; "), "airlock login " + visible.Word(first)}
	case signedIn == 0:
		return "none is kept", nil
	}
	return strings.Join(append([]string{verb.Counted(signedIn, "server") + " signed in to"}, lines...), "\n"), nil
}
