package system

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/catalog/pins"
	"github.com/airlock-mcp/airlock/internal/canon"
	"github.com/airlock-mcp/airlock/internal/store"
)

// OpenPins returns the file with the definitions that were seen before. Each
// configuration file has its own: two may use one name for different servers.
func OpenPins(c *config.Config) (*pins.File, error) {
	path, err := pinsFile(c)
	if err != nil {
		return nil, err
	}
	return pins.NewFile(path), nil
}

// pinsFile is the path of the file that OpenPins opens.
func pinsFile(c *config.Config) (string, error) {
	home, err := store.Home(os.Getenv)
	if err != nil {
		return "", err
	}
	name := strings.TrimPrefix(canon.Digest([]byte(c.File)), "sha256:")
	return filepath.Join(store.Pins(home), name[:16]+".json"), nil
}

// withhold replaces each tool whose definition changed since it was first seen by a placeholder,
// because no operator has seen the new definition.
func withhold(servers []catalog.Server, changed []pins.Change) []catalog.Server {
	isChanged := map[pins.Ref]bool{}
	for _, c := range changed {
		isChanged[pins.Ref{ServerID: c.ServerID, ToolName: c.ToolName}] = true
	}
	kept := slices.Clone(servers)
	for i := range kept {
		kept[i].Tools, kept[i].Features = slices.Clone(kept[i].Tools), slices.Clone(kept[i].Features)
		for _, list := range [][]catalog.Tool{kept[i].Tools, kept[i].Features} {
			for j, tool := range list {
				if isChanged[pins.Ref{ServerID: tool.ServerID, ToolName: tool.Name}] {
					list[j] = catalog.Withhold(tool)
				}
			}
		}
	}
	return kept
}
