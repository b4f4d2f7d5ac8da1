package config

import (
	"encoding/base64"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/airlock-mcp/airlock/internal/lazyregexp"
	"github.com/airlock-mcp/airlock/internal/store"
	"github.com/airlock-mcp/airlock/internal/strictjson"
)

// runtimeSockets matches the addresses of container engines and of the programs that start
// containers on a node of a cluster. A process that can write to one has the rights of root
// on the host, and so has every tool call of a server that can.
var runtimeSockets = lazyregexp.New(
	`\b(docker|containerd|podman|crio|buildkitd|cri-dockerd|dockershim|kubelet|k3s|docker\.raw|lxd/unix|` +
		`incus/unix)\.(sock(et)?|raw\.sock)($|[^\w.-])|(^|[/=])(docker|podman)_engine($|\W)` +
		`|\b(tcp|http)://(localhost|127\.[0-9.]+|0\.0\.0\.0|\[::1?\]|host\.docker\.internal):237[56]\b`)

// engineVariables are the variables with the address of a container engine for its clients.
var engineVariables = []string{"DOCKER_HOST", "CONTAINER_HOST", "CONTAINERD_ADDRESS", "CONTAINER_RUNTIME_ENDPOINT",
	"IMAGE_SERVICE_ENDPOINT", "BUILDKIT_HOST"}

// runtimeSocket returns the path or the variable with which the server is given the socket of
// a container engine, or "".
func (s Server) runtimeSocket() string {
	if name := s.mentioned(runtimeSockets); name != "" {
		return name
	}
	for _, variable := range engineVariables {
		if value, ok := s.Env[variable]; ok && isLocalEngine(value.Reveal()) {
			return variable
		}
	}
	return ""
}

// isLocalEngine reports whether the address is that of an engine on this machine.
func isLocalEngine(address string) bool {
	return strings.HasPrefix(address, "/") || strings.HasPrefix(address, "unix:") ||
		strings.HasPrefix(address, "npipe:") || strings.HasPrefix(address, "fd:")
}

// clusterTokens matches the paths of the tokens of a pod, and of a user of a cluster.
var clusterTokens = lazyregexp.New(
	`/secrets/kubernetes\.io|serviceaccount/(token|ca\.crt|namespace)|/serviceaccount(/|:|$)|` +
		`/secrets/eks\.amazonaws\.com|/secrets/azure/tokens|/run/secrets/tokens|/var/lib/kubelet|/etc/kubernetes|` +
		`/etc/rancher/k[3s]|/\.kube(/|:|,|$)|(^|[/=\s])kubeconfig(\.ya?ml|\.conf)?($|[=:\s])|-kubeconfig\b`)

// clusterToken returns the path, the variable or the header with which the server is given a
// Kubernetes token, or "". Tokens are also recognized by their content, in files and values of
// any name.
func (s Server) clusterToken() string {
	if token := s.mentioned(clusterTokens); token != "" {
		return token
	}
	if _, ok := s.Env["KUBECONFIG"]; ok {
		return "KUBECONFIG"
	}
	for name, value := range s.Env {
		if text := value.Reveal(); isClusterToken(text) || holdsClusterToken(text) {
			return name
		}
	}
	for name, value := range s.Headers {
		if isClusterToken(strings.TrimPrefix(value.Reveal(), "Bearer ")) {
			return name
		}
	}
	for _, arg := range s.words() {
		for part := range strings.FieldsFuncSeq(arg, func(r rune) bool { return r == ',' || r == '=' || r == ':' }) {
			if isClusterToken(part) {
				return "among its arguments"
			}
			if holdsClusterToken(strings.TrimPrefix(part, "-v")) {
				return part
			}
		}
	}
	return ""
}

// isClusterToken reports whether a text is a JWT for an account of a pod.
func isClusterToken(text string) bool {
	parts := strings.Split(strings.TrimSpace(text), ".")
	if len(parts) != 3 {
		return false
	}
	body, err := base64.RawURLEncoding.DecodeString(parts[1])
	var claims struct {
		Subject string `json:"sub"`
	}
	return err == nil && strictjson.UnmarshalOpen(body, &claims) == nil &&
		strings.HasPrefix(claims.Subject, "system:serviceaccount:")
}

// Limits on the bytes and files that are read below a path that a server is given. A token
// has about 1 KiB, and its volume a few files.
const (
	maxTokenBytes = 16 << 10
	maxTokenFiles = 16
)

// holdsClusterToken reports whether a path is that of a token, or of a directory with a token,
// such as a projected volume.
func holdsClusterToken(name string) bool {
	if !filepath.IsAbs(name) {
		return false
	}
	info, err := os.Stat(name)
	if err != nil {
		return false
	}
	if !info.IsDir() {
		return isTokenFile(name)
	}
	entries, err := os.ReadDir(name)
	return err == nil && len(entries) <= maxTokenFiles && slices.ContainsFunc(entries, func(e os.DirEntry) bool {
		return isTokenFile(filepath.Join(name, e.Name()))
	})
}

func isTokenFile(name string) bool {
	info, err := os.Stat(name)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxTokenBytes {
		return false
	}
	text, err := store.ReadFile(name)
	return err == nil && isClusterToken(string(text))
}

// words returns the server's arguments, and the words of commands that are passed to a shell.
func (s Server) words() []string {
	words := slices.Clone(s.Args)
	for i, arg := range s.Args {
		if i > 0 && shellOption.MatchString(s.Args[i-1]) {
			words = append(words, strings.FieldsFunc(
				arg, func(r rune) bool { return strings.ContainsRune(" \t\n\"'", r) })...)
		}
	}
	return words
}

// shellOption matches the option of a shell that precedes a command.
var shellOption = lazyregexp.New(`^-[a-z]*c$`)

// mentioned returns the first match in the command, the arguments, the directory and the
// environment of the server, or "". Its URL is searched only if it is a Unix socket.
func (s Server) mentioned(what *lazyregexp.Regexp) string {
	texts := append([]string{s.Command, s.Cwd}, s.Args...)
	for _, secret := range s.Env {
		texts = append(texts, secret.Reveal())
	}
	if strings.HasPrefix(s.URL, "unix:") {
		texts = append(texts, s.URL)
	}
	for _, text := range texts {
		if found := what.FindString(text); found != "" {
			return strings.Trim(found, "/=:, ")
		}
	}
	return ""
}

// runDirectory returns a directory of sockets and tokens that the server is given as an
// argument or a mount, or "".
func (s Server) runDirectory() string {
	mounted := false // the argument before this one takes a mount
	for _, arg := range s.words() {
		for part := range strings.SplitSeq(arg, ",") { // type=bind,source=/run,target=/x
			option, value, isOption := strings.Cut(part, "=")
			if slices.Contains([]string{"target", "dst", "destination"}, option) {
				continue // within the container
			}
			isMount := mounted || slices.Contains([]string{"source", "src", "-v", "--volume"}, option)
			if !isOption || strings.HasPrefix(option, "/") {
				value = part
			}
			if short, ok := strings.CutPrefix(part, "-v/"); ok { // -v/run:/run
				value, isMount = "/"+short, true
			}
			directory, _, _ := strings.Cut(strings.TrimPrefix(value, "file://"), ":")
			if name := runPart(directory, isMount); name != "" {
				return name
			}
		}
		mounted = slices.Contains([]string{"-v", "--volume", "--mount"}, arg)
	}
	return ""
}

// engineDirectories hold the sockets of container engines.
var engineDirectories = lazyregexp.New(
	`^(/var)?/run/(docker|containerd|podman|crio|k3s(/containerd)?|buildkit|user/[0-9]+(/(podman|docker))?|secrets)$|` +
		`^/var/snap/lxd/common/lxd$`)

// runPart returns a directory, with links resolved, if it is /run, a part of /run with sockets
// or tokens or, if it is mounted, a parent of /run.
func runPart(directory string, isMount bool) string {
	clean := path.Clean(directory)
	names := []string{clean}
	if real, err := filepath.EvalSymlinks(clean); err == nil && path.IsAbs(clean) {
		names = append(names, real)
	}
	for _, name := range names {
		if name == "/run" || name == "/var/run" || engineDirectories.MatchString(name) || isMount &&
			(name == "/" || name == "/var" || name == "/proc") {
			return name
		}
	}
	return ""
}

// engineSockets are patterns for the sockets of container engines, relative to /run.
var engineSockets = []string{
	"docker.sock", "podman/podman.sock", "containerd/containerd.sock", "crio/crio.sock",
	"k3s/containerd/containerd.sock",
	"buildkit/buildkitd.sock", "cri-dockerd.sock", "dockershim.sock", "user/*/docker.sock", "user/*/podman/podman.sock",
}

// InReach returns the sockets of container engines that this user can write to, and the files
// with tokens of a cluster that it can read. The programs of servers run as this user, so they
// can use all of them. variables is the environment, which may contain paths of other tokens.
func InReach(root string, variables []string) []string {
	var found []string
	add := func(name string) {
		// /var/run is often /run
		if real, err := filepath.EvalSymlinks(name); err == nil && !slices.Contains(found, real) {
			found = append(found, real)
		}
	}
	patterns := []string{filepath.Join(root, "var/lib/kubelet/pod-resources/kubelet.sock")}
	for _, run := range []string{"run", "var/run"} {
		for _, socket := range engineSockets {
			patterns = append(patterns, filepath.Join(root, run, socket))
		}
	}
	for _, pattern := range patterns {
		names, _ := filepath.Glob(pattern) // the patterns are right
		for _, name := range names {
			if info, err := os.Stat(name); err == nil && info.Mode()&os.ModeSocket != 0 &&
				unix.Access(name, unix.W_OK) == nil {
				add(name)
			}
		}
	}
	for _, run := range []string{"run", "var/run"} {
		if name := filepath.Join(root, run, "secrets/kubernetes.io/serviceaccount/token"); unix.Access(
			name, unix.R_OK) == nil {
			add(name)
		}
	}
	for _, variable := range variables {
		if _, name, _ := strings.Cut(variable, "="); filepath.IsAbs(name) && isTokenFile(name) {
			add(name)
		}
	}
	return found
}
