package state

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/airlock-mcp/airlock/admission/approval"
	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/app/setup"
	"github.com/airlock-mcp/airlock/internal/agekey"
)

// RotateKeys makes a new identity in each key that encrypts stored data, and returns the names of the files. What was
// encrypted before stays readable. It records the rotation first, as an act of the user of this process. No process may
// use the state directory meanwhile.
func RotateKeys(ctx context.Context, c *config.Config) ([]string, error) {
	directories, err := setup.FindDirectories(c)
	if err != nil {
		return nil, err
	}
	served, err := approval.IsServed(directories.Home)
	if err != nil {
		return nil, err
	}
	if served {
		return nil, &setup.Error{Err: errors.New("an Airlock is running, and it would go on with the old keys"),
			Advice: "end the agent hosts, then run: airlock stop"}
	}
	if err := recordAct(ctx, c, "the keys of stored data are rotated"); err != nil {
		return nil, err
	}
	paths, err := filepath.Glob(filepath.Join(directories.Keys, "*.key"))
	if err != nil {
		return nil, err
	}
	names := []string{}
	for _, path := range paths {
		rotated, err := agekey.Rotate(path, strings.TrimSuffix(path, ".key")+".pub")
		if err != nil {
			return names, fmt.Errorf("rotating %q: %w", path, err)
		}
		if rotated {
			names = append(names, filepath.Base(path))
		}
	}
	return names, nil
}
