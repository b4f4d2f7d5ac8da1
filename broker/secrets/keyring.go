package secrets

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"github.com/airlock-mcp/airlock/internal/secret"
)

// keyringTimeout is how long the keyring may take; it may ask the user to unlock it.
const keyringTimeout = time.Minute

// fromKeyring asks the operating system's own program for its keyring: the
// Secret Service through secret-tool (libsecret) on Linux, the Keychain through
// security on macOS. The credential comes over a pipe, never over a command line.
func fromKeyring(ctx context.Context, service, name string) (secret.Value, error) {
	ctx, cancel := context.WithTimeout(ctx, keyringTimeout)
	defer cancel()
	command := []string{"secret-tool", "lookup", "service", service, "account", name}
	if runtime.GOOS == "darwin" {
		command = []string{"security", "find-generic-password", "-s", service, "-a", name, "-w"}
	}
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Stdout = &out
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return secret.Value{}, fmt.Errorf("the program %s, which opens the keyring, is not installed", command[0])
	case ctx.Err() != nil:
		return secret.Value{}, fmt.Errorf("the keyring did not answer within %v", keyringTimeout)
	case errors.As(err, &exit):
		return secret.Value{}, ErrNotFound
	case err != nil:
		return secret.Value{}, fmt.Errorf("asking the keyring: %w", err)
	}
	return secret.New(strings.TrimSuffix(out.String(), "\n")), nil
}
