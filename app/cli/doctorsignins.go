package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/airlock-mcp/airlock/app/system"
)

// signIns returns the state of the stored sign-ins, one line each. A server without a sign-in is
// not a failure here, because it may not need one; --servers finds out.
func (e *examination) signIns(ctx context.Context) (string, error) {
	resolved, err := system.ResolveSecrets(ctx, e.config)
	if err != nil {
		return "", err
	}
	var lines, over []string
	signedIn, first := 0, ""
	for _, state := range system.SignInStates(resolved, version) {
		report := loggedIn{ServerID: state.ServerID, SignedIn: state.IsSignedIn, Wanted: state.Wanted, Problem: state.Over}
		report.take(state.SignedIn)
		switch {
		case state.Problem != "":
			return "", &hinted{errors.New(state.Problem), fmt.Sprintf("airlock logout %s forgets it; then sign in again", state.ServerID), ExitFailed}
		case state.IsSignedIn:
			signedIn++
			lines = append(lines, state.ServerID+": "+report.words())
			if len(state.Wanted) == 0 {
				continue
			}
		case state.Over == "":
			continue
		}
		if first == "" {
			first = state.ServerID
		}
		over = append(over, state.ServerID+": "+report.words())
	}
	switch {
	case len(over) > 0:
		return "", &noted{strings.Join(over, "; "), "airlock login " + first}
	case signedIn == 0:
		return "none is kept", nil
	}
	return strings.Join(append([]string{counted(signedIn, "server") + " signed in to"}, lines...), "\n"), nil
}
