// Package store locates Airlock's state and changes it safely: files and directories appear
// atomically, and locks coordinate processes that share the state.
package store

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Environment variables that determine the state directory.
const (
	EnvHome     = "AIRLOCK_HOME"
	envDataHome = "XDG_DATA_HOME"
	envUserHome = "HOME"
)

// Home returns the state directory as an absolute path: $AIRLOCK_HOME if set,
// /var/lib/airlock for root, else airlock in the user's data directory of the XDG
// Base Directory Specification. The directory need not exist. If another user owns it or
// one of its entries, or can change it or one of them, the error is a *ForeignError.
func Home(getenv func(string) string) (string, error) {
	dir, err := home(getenv, os.Geteuid())
	if err != nil {
		return "", err
	}
	return dir, checkState(dir)
}

func home(getenv func(string) string, uid int) (string, error) {
	if dir := getenv(EnvHome); dir != "" {
		abs, err := filepath.Abs(dir)
		if err != nil {
			return "", fmt.Errorf("resolving %s %q: %w", EnvHome, dir, err)
		}
		return abs, nil
	}
	if uid == 0 {
		return "/var/lib/airlock", nil
	}
	// The specification requires relative paths to be ignored.
	if dir := getenv(envDataHome); filepath.IsAbs(dir) {
		return filepath.Join(dir, "airlock"), nil
	}
	if dir := getenv(envUserHome); filepath.IsAbs(dir) {
		return filepath.Join(dir, ".local", "share", "airlock"), nil
	}
	return "", fmt.Errorf("the state directory of Airlock is unknown: set %s or %s to an absolute path", EnvHome,
		envUserHome)
}

// Images is the directory of built sandbox images. Package images owns it.
func Images(home string) string { return filepath.Join(home, "images") }

// Wrappers is the directory of generated wrapper trees, one per snapshot digest.
func Wrappers(home string) string { return filepath.Join(home, "wrappers") }

// Roots is the directory with the certificates that sandboxes with a network trust.
func Roots(home string) string { return filepath.Join(home, "roots") }

// Suspended is the directory of suspended runs and their states.
func Suspended(home string) string { return filepath.Join(home, "suspended") }

// Audit is the directory of audit records.
func Audit(home string) string { return filepath.Join(home, "audit") }

// Approvals is the directory of questions that wait for a person's answer.
func Approvals(home string) string { return filepath.Join(home, "approvals") }

// Pins is the directory in which former versions kept tool definitions that were seen before.
func Pins(home string) string { return filepath.Join(home, "pins") }

// Embeddings is the directory of cached vectors of tools' texts.
func Embeddings(home string) string { return filepath.Join(home, "embeddings") }

// Lists is the directory of cached tool lists.
func Lists(home string) string { return filepath.Join(home, "lists") }

// Recordings is the directory of recordings of runs, for replays.
func Recordings(home string) string { return filepath.Join(home, "recordings") }

// Attachments is the directory of files that runs attached.
func Attachments(home string) string { return filepath.Join(home, "attachments") }

// Sessions is the directory of the files that runs of one session share.
func Sessions(home string) string { return filepath.Join(home, "sessions") }

// SignIns is the directory of the locks of sign-ins to upstream servers, and of sign-ins of former versions.
func SignIns(home string) string { return filepath.Join(home, "sign-ins") }

// Trust is the directory of configurations that a person has confirmed.
func Trust(home string) string { return filepath.Join(home, "trust") }

// Keys is the directory of secret keys; it is created with mode 0700.
func Keys(home string) string { return filepath.Join(home, "keys") }

// Daemon is the directory of the daemon's socket and lock. It is in the state directory
// itself, so that every process that has the state directory finds the same daemon.
func Daemon(home string) string { return filepath.Join(home, "daemon") }

// Staging is the directory in which a backup copies databases, and to which one is unpacked.
func Staging(home string) string { return filepath.Join(home, "backup") }

// IsRebuilt reports whether an entry of the state directory is not part of a backup: caches, what
// belongs to running processes, and images, which `airlock images build` builds again.
func IsRebuilt(name string) bool {
	switch name {
	case "images", "wrappers", "embeddings", "lists", "daemon", "run", "backup", "lost+found":
		return true
	}
	return strings.HasPrefix(name, ServeLog)
}

// ServeLog is the name of the log of a daemon in the background, in the state directory.
const ServeLog = "serve.log"

// Run is the directory for the state of living sandboxes. If the system has a place in
// memory for it, it is there and vanishes at a reboot, as sandboxes do. Its path is
// short, because the path of a Unix socket is limited to 107 bytes, and does not depend on
// the environment. Each home has its own.
func Run(home string) string { return run(home, os.Geteuid(), "/run/user") }

// maxRun is the length in bytes up to which a directory in the state directory is used.
const maxRun = 40

func run(home string, uid int, users string) string {
	sum := sha256.Sum256([]byte(home))
	own := hex.EncodeToString(sum[:4])
	if uid == 0 {
		return filepath.Join("/run/airlock", own)
	}
	dir := filepath.Join(users, strconv.Itoa(uid))
	if info, err := os.Stat(dir); err == nil && info.IsDir() && CheckOwner(dir) == nil {
		return filepath.Join(dir, "airlock", own)
	}
	if dir := filepath.Join(home, "run"); len(dir) <= maxRun {
		return dir
	}
	return filepath.Join("/tmp", "airlock-"+strconv.Itoa(uid), own) // its owner is checked before it is used
}
