package config

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/airlock-mcp/airlock/internal/golden"
)

// Every file under testdata/hosts is a file of a host; it must load unchanged. The file .want
// beside it lists its servers and the findings.
func TestHostFilesWorkUnchanged(t *testing.T) {
	files := hostFilesOf(t)
	env := envOf(map[string]string{"HOME": "/home/ann", "API_KEY": "hunter2"})
	for _, file := range files {
		t.Run(file, func(t *testing.T) {
			c, err := Load(file, env)
			if err != nil {
				t.Fatalf("got %v, want the file to load", err)
			}
			var got strings.Builder
			for _, s := range c.Servers {
				fmt.Fprintf(&got, "server %s %s%s\n", s, s.Command, s.URL)
			}
			for _, f := range Lint(c) {
				fmt.Fprintf(&got, "finding %d: %s\n", f.Line, f.Message)
			}
			golden.Check(t, []byte(got.String()), strings.TrimSuffix(file, ".json")+".want")
		})
	}
}

func TestWhatAHostGrantsIsNotGranted(t *testing.T) {
	c := mustLoad(t, `{"mcpServers": {"a": {"command": "x", "alwaysAllow": ["delete"], "autoApprove": ["*"], `+
		`"trust": true}}}`, noEnv)
	if diff := cmp.Diff(Settings{}, c.Servers[0].Settings); diff != "" {
		t.Errorf("settings were made from a host's grants (-want +got):\n%s", diff)
	}
	for i, key := range []string{"alwaysAllow", "autoApprove", "trust"} {
		want := "mcpServers.a." + key + " grants nothing here: a host's approvals are not Airlock's"
		if got := Lint(c)[i].Message; got != want {
			t.Errorf("got finding %q, want %q", got, want)
		}
	}
}

func TestSwitchedOffServersAreLeftOut(t *testing.T) {
	c := mustLoad(t, `
mcpServers:
  a: {command: x, disabled: true}
  b: {command: x, enabled: false}
  c: {disabled: true}
  A: {command: y, disabled: false}
servers: {b: {trustAnnotations: true}}
`, noEnv)
	if len(c.Servers) != 1 || c.Servers[0].ID != "A" {
		t.Errorf("got %v, want only A", c.Servers)
	}
}

func TestLint(t *testing.T) {
	for name, c := range map[string]struct{ server, want string }{
		"a mounted engine socket": {`{command: docker, args: [run, -v, "/var/run/docker.sock:/var/run/docker.sock", ` +
			`x]}`, "docker.sock"},
		"containerd's": {`{command: x, args: ["--address=/run/containerd/containerd.sock"]}`,
			"containerd.sock"},
		"podman's in the environment": {`{command: x, env: {DOCKER_HOST: "unix:///run/user/1000/podman/podman.sock"}}`,
			"podman.sock"},
		"a pod's token": {`{command: x, env: {TOKEN_FILE: /var/run/secrets/kubernetes.io/serviceaccount/token}}`,
			"Kubernetes token"},
		"a pod's token, mounted": {`{command: docker, args: [run, "-v/run/secrets/kubernetes.io:/t", x]}`,
			"Kubernetes token"},
		"a user's cluster": {`{command: docker, args: [run, -v, "/home/ann/.kube:/root/.kube", x]}`,
			"Kubernetes token"},
		"a user's cluster by name": {`{command: x, env: {KUBECONFIG: /srv/c.yaml}}`, "KUBECONFIG"},
		"/var/run mounted": {`{command: docker, args: [run, -v, "/var/run:/host/run:ro", x]}`,
			"gets /var/run"},
		"/run mounted, in one word": {`{command: docker, args: [run, "--volume=/run/:/run", x]}`, "gets /run"},
		"/run mounted, glued":       {`{command: podman, args: [run, "-v/run:/run", x]}`, "gets /run"},
		"/run mounted by its options": {`{command: docker, args: [run, --mount, ` +
			`"type=bind,source=/var/run,target=/x", x]}`, "gets /var/run"},
		"the same in one word": {`{command: docker, args: [run, "--mount=type=bind,src=/run,dst=/x", x]}`,
			"gets /run"},
		"all of the machine mounted": {`{command: docker, args: [run, -v, "/:/host", x]}`, "gets /"},
		"/var/run as an argument":    {`{command: files, args: [/srv, /var/run]}`, "gets /var/run"},
		"a mount of something else": {`{command: docker, args: [run, -v, "/srv/run:/run", --mount, ` +
			`"type=bind,source=/srv,target=/run", x]}`, ""},
		"a directory of that name": {`{command: files, args: [/srv/var/run, ./run, run]}`, ""},
		"a privileged container":   {`{command: /usr/bin/podman, args: [run, --privileged, x]}`, "privileged"},
		"headers in clear": {`{url: "http://crm.example.com/mcp", headers: {Authorization: x}}`,
			"readable on the way"},
		"headers in clear, at home": {`{url: "http://localhost:8080/mcp", headers: {Authorization: x}}`, ""},
		"headers, encrypted":        {`{url: "https://crm.example.com/mcp", headers: {Authorization: x}}`, ""},
		"an ordinary container": {`{command: docker, args: [run, -i, --rm, ghcr.io/github/github-mcp-server]}`,
			""},
		"another program's privileged": {`{command: x, args: [--privileged]}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			findings := Lint(mustLoad(t, "mcpServers:\n  a: "+c.server, noEnv))
			switch {
			case c.want == "" && len(findings) > 0:
				t.Errorf("got %v, want no finding", findings)
			case c.want != "" && len(findings) != 1:
				t.Errorf("got %v, want one finding", findings)
			case c.want != "" && (!strings.Contains(findings[0].Message, c.want) || findings[0].Line != 2 ||
				findings[0].Hint() == ""):
				t.Errorf("got %q (hint %q), want it to say %q with a place and a hint", findings[0], findings[0].Hint(),
					c.want)
			}
		})
	}
}

// A configuration contains no credentials when it is printed in any format.
func TestSecretsNeverPrint(t *testing.T) {
	c := mustLoad(t, `
mcpServers:
  a: {command: x, args: [--token, hunter2], env: {TOKEN: hunter2}}
  b: {url: "https://x.example/?key=hunter2", headers: {Authorization: "Bearer hunter2"}}
`, noEnv)
	s := c.Servers[0]
	encoded, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	env, err := json.Marshal(s.Env)
	if err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	logger := slog.New(slog.NewJSONHandler(&log, nil))
	logger.InfoContext(t.Context(), "config", slog.Any("config", c), slog.Any("server", s), slog.Any("env", s.Env),
		slog.Any("one", s.Env["TOKEN"]))
	slog.New(slog.NewTextHandler(&log, nil)).InfoContext(
		t.Context(), "config", slog.Any("config", c), slog.Any("env", s.Env))
	out := fmt.Sprintf("%v %+v %#v %s %v %+v %#v %q", c, *c, *c, c.Servers, s.Env, s.Env, s.Env,
		s.Env["TOKEN"]) + log.String() + string(encoded) + string(env)
	if strings.Contains(out, "hunter2") {
		t.Errorf("a secret was printed: %s", out)
	}
	if !strings.Contains(out, "[redacted]") || s.Env["TOKEN"].Reveal() != "hunter2" {
		t.Errorf("got %s, want the secret redacted but kept", out)
	}
}

// hostFilesOf returns the files under testdata/hosts.
func hostFilesOf(t testing.TB) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir("testdata/hosts", func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".json") {
			files = append(files, path)
		}
		return err
	})
	if err != nil || len(files) == 0 {
		t.Fatalf("got %d files (%v), want some", len(files), err)
	}
	return files
}
