package verb

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/app/hosts"
	"github.com/airlock-mcp/airlock/internal/store"
	"github.com/airlock-mcp/airlock/internal/visible"
)

// RegisterCommand returns the command that registers this program with Claude Code, with this
// configuration and state directory, and with the profile if profile is not empty.
func RegisterCommand(c *config.Config, profile string) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("finding this program: %w", err)
	}
	home, err := store.Home(os.Getenv)
	if err != nil {
		return "", err
	}
	usual, err := store.Home(func(name string) string {
		if name == store.EnvHome {
			return ""
		}
		return os.Getenv(name)
	})
	words := []string{"claude", "mcp", "add"}
	if err != nil || home != usual {
		words = append(words, "--env", store.EnvHome+"="+home)
	}
	// --env takes several values, so another flag must follow it.
	words = append(words, "--scope", "user", "airlock", "--", self, "mcp")
	if c.File != "" {
		words = append(words, "--config", filepath.Clean(c.File))
	}
	if profile != "" {
		words = append(words, "--profile", profile)
	}
	for i, word := range words {
		words[i] = visible.Word(word)
	}
	return strings.Join(words, " "), nil
}

// HostEnvironment returns the directories with the files of this user's hosts.
func HostEnvironment() (hosts.Environment, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		return hosts.Environment{}, &UsageError{err.Error(), "set HOME"}
	}
	directory, err := os.Getwd()
	return hosts.Environment{Home: home, Directory: directory, Lookup: os.LookupEnv}, err
}
