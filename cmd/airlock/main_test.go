package main

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/airlock-mcp/airlock/internal/testenv"
	"github.com/airlock-mcp/airlock/runner/ctrd/ctrdtest"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"airlock": main, "qwed-mcp": main, "mcp-kernel-server": main})
}

// TestScript drives the real program with the scripts of testdata/script, which
// need neither a sandbox nor a server.
func TestScript(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(env *testscript.Env) error {
			nameConfiguration(env)
			env.Setenv("AIRLOCK_HOME", filepath.Join(env.WorkDir, ".airlock")) // not that of the user who tests
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"base64": decodeBase64},
	})
}

// nameConfiguration names the configuration of a script, which otherwise has to be
// confirmed by `airlock trust`.
func nameConfiguration(env *testscript.Env) {
	if _, err := os.Stat(filepath.Join(env.WorkDir, "airlock.yaml")); err == nil {
		env.Setenv("AIRLOCK_CONFIG", "airlock.yaml")
	}
}

// decodeBase64 is the script command `base64 FROM TO`: it writes bytes that a
// script's own text cannot hold.
func decodeBase64(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: base64 FROM TO")
	}
	data, err := base64.StdEncoding.DecodeString(strings.TrimSpace(ts.ReadFile(args[0])))
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), data, 0o644))
}

// startContainerd is the script command `containerd`: it starts a daemon that
// ends with the script, and puts its address into $CONTAINERD.
func startContainerd(ts *testscript.TestScript, _ bool, _ []string) {
	daemon, err := ctrdtest.Start(ctrdtest.Built(ts.Getenv("REPO")))
	ts.Check(err)
	ts.Defer(func() { ts.Check(daemon.Close()) })
	ts.Setenv("CONTAINERD", daemon.Address)
}

// TestSandboxScript drives the real program with real sandboxes and real servers.
func TestSandboxScript(t *testing.T) {
	sandbox := testenv.Sandbox(t)
	root := testenv.RepoRoot(t)
	testscript.Run(t, testscript.Params{
		Dir:  "testdata/sandbox",
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"containerd": startContainerd},
		Setup: func(env *testscript.Env) error {
			nameConfiguration(env)
			// The scripts run beside each other, so each has a separate home: a host that one of them serves
			// would guard the configurations of the others.
			env.Setenv("AIRLOCK_HOME", testenv.NewHome(t, sandbox))
			env.Setenv("AIRLOCK_RUNSC", sandbox.Runsc)
			env.Setenv("REPO", root)
			env.Setenv("SERVERS", filepath.Join(root, "test", "servers", "node_modules", "@modelcontextprotocol"))
			return nil
		},
	})
}
