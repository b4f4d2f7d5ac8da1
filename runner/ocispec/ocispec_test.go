package ocispec_test

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opencontainers/runtime-spec/specs-go"
	"pgregory.net/rapid"

	"github.com/airlock-mcp/airlock/internal/golden"
	"github.com/airlock-mcp/airlock/runner"
	"github.com/airlock-mcp/airlock/runner/ocispec"
)

// request is the content of a case's request.json; omitted limits have their defaults.
type request struct {
	Spec   runner.Spec
	Host   ocispec.Identity
	Broker string // path of the socket
}

// TestCases builds testdata/CASE/in/request.json and compares the result with
// want/config.json, or the error with want/error.txt.
func TestCases(t *testing.T) {
	cases, err := filepath.Glob("testdata/*/in/request.json")
	if err != nil || len(cases) == 0 {
		t.Fatalf("cases: got %d, %v, want some", len(cases), err)
	}
	for _, in := range cases {
		dir := filepath.Dir(filepath.Dir(in))
		t.Run(filepath.Base(dir), func(t *testing.T) {
			data, err := os.ReadFile(in)
			if err != nil {
				t.Fatal(err)
			}
			req := request{Spec: runner.Spec{Limits: runner.DefaultLimits()}}
			decoder := json.NewDecoder(strings.NewReader(string(data)))
			decoder.DisallowUnknownFields()
			if err := decoder.Decode(&req); err != nil {
				t.Fatal(err)
			}
			req.Spec.Broker = at(req.Broker)
			config, err := ocispec.Build(req.Spec, req.Host)
			if err != nil {
				golden.CheckDir(t, map[string][]byte{"error.txt": []byte(err.Error() + "\n")},
					filepath.Join(dir, "want"))
				return
			}
			out, err := json.MarshalIndent(config, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			golden.CheckDir(t, map[string][]byte{"config.json": append(out, '\n')}, filepath.Join(dir, "want"))
		})
	}
}

// socket is a listener of which only the address is used.
type socket struct {
	net.Listener
	path string
}

func at(path string) *socket { return &socket{path: path} }

func (s *socket) Addr() net.Addr { return &net.UnixAddr{Name: s.path, Net: "unix"} }

// TestNothingIsGranted states what holds for every request that is not refused.
func TestNothingIsGranted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[a-z./]{0,12}`)
		spec := runner.Spec{
			ID: "sb-1", Limits: runner.DefaultLimits(),
			Image: runner.Image{RootFS: "/" + name.Draw(t, "root"), Args: []string{"/guest"},
				Env: rapid.SliceOf(name).Draw(t, "env")},
			Broker: at("/run/x/" + name.Draw(t, "socket") + "/broker.sock"),
		}
		for range rapid.IntRange(0, 3).Draw(t, "mounts") {
			spec.Mounts = append(spec.Mounts, runner.Mount{Source: "/" + name.Draw(t, "source"),
				Target: "/workspace/" + name.Draw(t, "target")})
		}
		host := ocispec.Identity{UID: rapid.Uint32().Draw(t, "uid"), GID: rapid.Uint32().Draw(t, "gid")}
		config, err := ocispec.Build(spec, host)
		if err != nil {
			return
		}
		checkNothingGranted(t, config)
	})
}

func checkNothingGranted(t *rapid.T, config *specs.Spec) {
	p := config.Process
	if caps := p.Capabilities; caps == nil || len(caps.Bounding)+len(caps.Effective)+len(caps.Permitted)+len(
		caps.Inheritable)+len(caps.Ambient) != 0 {
		t.Errorf("capabilities: got %+v, want an empty set", caps)
	}
	if p.User.UID == 0 || p.User.GID == 0 || len(p.User.AdditionalGids) != 0 || !p.NoNewPrivileges {
		t.Errorf("user: got %+v, new privileges %v", p.User, !p.NoNewPrivileges)
	}
	if !config.Root.Readonly || config.Hooks != nil || len(config.Linux.Devices) != 0 || len(config.Annotations) != 0 {
		t.Errorf("got root %+v, hooks %v, devices %v, annotations %v", config.Root, config.Hooks, config.Linux.Devices,
			config.Annotations)
	}
	if config.Linux.UIDMappings[0].HostID == 0 || config.Linux.GIDMappings[0].HostID == 0 {
		t.Errorf("the file server is root of the host")
	}
	for _, ns := range config.Linux.Namespaces {
		if ns.Path != "" {
			t.Errorf("joins the namespace %q", ns.Path)
		}
	}
	for _, m := range config.Mounts {
		options := strings.Join(m.Options, ",") + ","
		if !strings.Contains(options, "nosuid,") || m.Type == "bind" && !strings.Contains(options, "ro,") {
			t.Errorf("mount at %s: got options %s", m.Destination, options)
		}
		if inside, ok := strings.CutPrefix(m.Destination, ocispec.Workspace); m.Type == "bind" && !ok &&
			m.Destination != ocispec.SocketDir {
			t.Errorf("a directory of the host at %s (%s)", m.Destination, inside)
		}
	}
}
