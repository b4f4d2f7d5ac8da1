package config

import (
	"encoding/base64"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"
)

// podToken is a token of the form that a cluster gives its pods.
func podToken(subject string) string {
	part := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
	return part(`{"alg":"RS256"}`) + "." + part(fmt.Sprintf(
		`{"iss":"https://kubernetes.default.svc","sub":%q}`, subject)) + "." + part("not a signature")
}

func TestWhatServersReachIsPointedOut(t *testing.T) {
	dir := t.TempDir()
	projected := filepath.Join(dir, "projected")
	if err := os.Mkdir(projected, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"projected/vault": podToken("system:serviceaccount:shop:cart") + "\n",
		"session": podToken("ann"), "notes.txt": "system:serviceaccount:shop:cart"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/run", filepath.Join(dir, "harmless")); err != nil {
		t.Fatal(err)
	}
	for _, server := range []string{
		`{command: x, args: [--docker, /run/docker.sock]}`,
		`{command: x, env: {DOCKER_HOST: "unix:///run/other.sock"}}`,
		`{command: x, env: {DOCKER_HOST: "tcp://127.0.0.1:2375"}}`,
		`{command: docker, args: [run, -v, "/var/lib/kubelet/pod-resources/kubelet.sock:/k", x]}`,
		`{command: docker, args: [run, -v, "/run/podman:/run/podman", x]}`,
		`{command: docker, args: [run, -v, "/run/user/1000:/u", x]}`,
		`{command: docker, args: [run, "--mount=type=bind,src=/run/containerd,dst=/c", x]}`,
		`{command: docker, args: [run, -v, "/run/crio/crio.sock:/c", x]}`,
		`{command: sh, args: [-c, "docker run -i -v /var/run:/host/run x"]}`,
		`{command: bash, args: [-lc, "exec files '/var/run'"]}`,
		`{command: docker, args: [run, -v, "//var//run/:/x", x]}`,
		`{command: docker, args: [run, -v, "/srv/../run:/x", x]}`,
		`{command: docker, args: [run, -v, "` + dir + `/harmless:/x", x]}`,
		`{command: files, args: ["file:///var/run"]}`,
		`{command: x, env: {VAULT_TOKEN_FILE: /var/run/secrets/tokens/vault}}`,
		`{command: x, env: {AWS_WEB_IDENTITY_TOKEN_FILE: /var/run/secrets/eks.amazonaws.com/serviceaccount/token}}`,
		`{command: x, env: {AUTH: ` + projected + `/vault}}`,
		`{command: docker, args: [run, -v, "` + projected + `:/t:ro", x]}`,
		`{command: docker, args: [run, --mount, "type=bind,src=` + projected + `,dst=/t", x]}`,
		`{command: x, args: ["--token-file=` + projected + `/vault"]}`,
		`{command: x, env: {AUTH: ` + podToken("system:serviceaccount:shop:cart") + `}}`,
		`{url: "https://x.example/mcp", headers: {Authorization: "Bearer ` +
			podToken("system:serviceaccount:shop:cart") + `"}}`,
		`{command: x, args: [--kubeconfig, /srv/c.yaml]}`,
		`{command: x, args: ["--kubeconfig=/srv/c.yaml"]}`,
		`{command: x, args: [/etc/rancher/k3s/k3s.yaml]}`,
		`{command: docker, args: [run, -v, "/var/lib/kubelet:/k", x]}`,
	} {
		if findings := Lint(mustLoad(t, "mcpServers:\n  a: "+server, noEnv)); len(findings) == 0 {
			t.Errorf("%s: nothing is pointed out", server)
		}
	}
	for _, server := range []string{
		`{command: npx, args: [-y, kubeconfig-linter]}`,
		`{command: npx, args: [-y, docker-socket-proxy-docs]}`,
		`{url: "https://docs.example/kubeconfig"}`,
		`{url: "https://docs.example/run/docker.sock.html"}`,
		`{command: files, args: [/srv/docker.sock.md, /srv/docker.socks]}`,
		`{command: x, env: {DOCKER_HOST: "ssh://build.example"}}`,
		`{command: x, env: {SESSION: ` + dir + `/session, NOTES: ` + dir + `/notes.txt, OTHER: ` + podToken("ann") +
			`}}`,
		`{command: docker, args: [run, -v, "/srv/run:/var/run", x]}`,
		`{command: docker, args: [run, -v, "data:/run", x]}`,
		`{command: docker, args: [run, -v, "/run/myservice:/s", x]}`,
		`{command: files, args: [/running, /var/runtime, /var]}`,
		`{command: x, env: {DB_PASSWORD_FILE: /run/secrets/db_password}}`,
		`{command: sh, args: [-c, "echo /running; exec server --run"]}`,
		`{command: x, args: [run, /home/ann/.kubernetes-notes]}`,
	} {
		if findings := Lint(mustLoad(t, "mcpServers:\n  a: "+server, noEnv)); len(findings) > 0 {
			t.Errorf("%s: got %v, want no finding", server, findings)
		}
	}
}

func TestWhatTheMachineOffersIsFound(t *testing.T) {
	// The path of a socket has at most 107 bytes: that of a test's directory may be longer.
	short, err := os.MkdirTemp("", "r")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(short) })
	root, err := filepath.EvalSymlinks(short)
	if err != nil {
		t.Fatal(err)
	}
	if found := InReach(root, []string{"HOME=" + root, "EMPTY="}); len(found) > 0 {
		t.Errorf("an empty machine: got %q", found)
	}
	for _, dir := range []string{"run/containerd", "run/user/1000/podman", "run/secrets/kubernetes.io/serviceaccount",
		"var", "srv"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("../run", filepath.Join(root, "var/run")); err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{}
	for _, name := range []string{"run/docker.sock", "run/user/1000/podman/podman.sock"} {
		name = filepath.Join(root, name)
		socket, err := net.Listen("unix", name)
		if err != nil {
			t.Fatal(err)
		}
		defer socket.Close()
		want[name] = true
	}
	for name, text := range map[string]string{
		"run/containerd/containerd.sock": "no socket", "run/secrets/kubernetes.io/serviceaccount/token": "opaque",
		"srv/token": podToken("system:serviceaccount:shop:cart"), "srv/other": podToken("ann"),
	} {
		name = filepath.Join(root, name)
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		want[name] = filepath.Base(name) == "token"
	}
	found := InReach(root, []string{"TOKEN_FILE=" + filepath.Join(root, "srv/token"),
		"OTHER=" + filepath.Join(root, "srv/other")})
	for _, name := range found {
		if !want[name] {
			t.Errorf("got %q, which is none or stands twice", name)
		}
		want[name] = false
	}
	if len(found) != 4 {
		t.Errorf("got %q, want 4", found)
	}
}
