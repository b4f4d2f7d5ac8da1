// Package configfile finds the configuration file and computes a digest of everything that
// determines its meaning. It has few imports, so that package fastpath can use it before
// the rest of the program is initialised; package config parses the file.
package configfile

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// MaxSize is the largest configuration file in bytes.
const MaxSize = 4 << 20

// Find returns the configuration file to use if none was named: the one
// that $AIRLOCK_CONFIG names, else airlock.yaml in dir, else
// airlock/airlock.yaml under $XDG_CONFIG_HOME (default ~/.config). It returns
// "" if no file exists, which config.Load treats as the built-in configuration. The
// file in $AIRLOCK_CONFIG need not exist: config.Load then returns the error.
func Find(dir string, env func(string) (string, bool)) string {
	if named, _ := env("AIRLOCK_CONFIG"); named != "" {
		return named
	}
	for _, place := range []string{filepath.Join(dir, Name), ofUser(env)} {
		if _, err := os.Lstat(place); place != "" && err == nil {
			return place
		}
	}
	return ""
}

// Name is the name of the file if no other was named.
const Name = "airlock.yaml"

// ofUser returns the path of the user's file, or "".
func ofUser(env func(string) (string, bool)) string {
	if home, _ := env("XDG_CONFIG_HOME"); filepath.IsAbs(home) { // XDG Base Directory 0.8: a relative one is ignored
		return filepath.Join(home, "airlock", Name)
	}
	if home, _ := env("HOME"); home != "" {
		return filepath.Join(home, ".config", "airlock", Name)
	}
	return ""
}

// IsProject reports whether Find returns a file only because it is in dir: nobody named
// it, and it is not the user's.
func IsProject(dir string, env func(string) (string, bool)) bool {
	own := filepath.Join(dir, Name)
	return Find(dir, env) == own && own != ofUser(env) && !isNamed(env)
}

func isNamed(env func(string) (string, bool)) bool {
	named, _ := env("AIRLOCK_CONFIG")
	return named != ""
}

// Digest returns a digest of a configuration file: its path, its bytes, and the values of
// all variables named in its text. The result of config.Load depends on nothing else. path
// is absolute, or "" for the built-in configuration. The digest must be kept from other
// users, because it allows them to test guesses of a credential.
func Digest(path string, data []byte, env func(string) (string, bool)) string {
	h := sha256.New()
	part := func(text string) { // of a fixed length, so that no two lists of parts are one text
		sum := sha256.Sum256([]byte(text))
		h.Write(sum[:])
	}
	part(path)
	part(string(data))
	for _, name := range Variables(data) {
		value, set := env(name)
		part(name)
		part(value)
		part(strconv.FormatBool(set))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Variables returns the variables that a file's text names as ${NAME}, ${NAME:-default}
// or ${env:NAME}, ordered and each once. Text that YAML would put together or take apart
// is not seen through: see config.Config.Source.
func Variables(data []byte) []string {
	var names []string
	for rest := string(data); ; {
		_, after, found := strings.Cut(rest, "${")
		if !found {
			break
		}
		rest = after
		name, _, closed := strings.Cut(after, "}")
		if !closed {
			break
		}
		name, _, _ = strings.Cut(name, ":-")
		name = strings.TrimPrefix(name, "env:")
		if name == "userHome" { // of Cursor and VS Code
			name = "HOME"
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
