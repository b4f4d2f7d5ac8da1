package config

import (
	"fmt"
	"net"
	"net/url"
	"path"
	"slices"
	"strings"
)

// Finding is something that works but that the operator should know.
type Finding struct {
	File    string
	Line    int // from 1; 0 when it has no place
	Column  int
	Message string // one sentence
	Advice  string // what to do about it; may be empty
}

// String returns "airlock.yaml:12:3: message".
func (f Finding) String() string { return place(f.File, f.Line, f.Column) + f.Message }

// Hint returns what to do about it, or "".
func (f Finding) Hint() string { return f.Advice }

// runtimeSockets are the addresses of container engines. Who can write to one
// is root on the host, and a server that has one hands that to every tool call.
var runtimeSockets = []string{"docker.sock", "containerd.sock", "podman.sock", "crio.sock", "buildkitd.sock", "cri-dockerd.sock", "dockershim.sock"}

// Lint returns what was noticed while the file was read and what is risky
// about its servers, in the order of the file.
func Lint(c *Config) []Finding {
	findings := slices.Clone(c.findings)
	for _, s := range c.Servers {
		for _, f := range s.risks() {
			f.File, f.Line, f.Column = c.named, s.line, s.column
			findings = append(findings, f)
		}
	}
	slices.SortStableFunc(findings, func(a, b Finding) int { return a.Line - b.Line })
	return findings
}

// risks returns the findings about one server, without their place.
func (s Server) risks() []Finding {
	var out []Finding
	if socket := s.runtimeSocket(); socket != "" {
		out = append(out, Finding{
			Message: fmt.Sprintf("the server %q gets the container engine's socket (%s): its tools can become root on this machine", s.ID, socket),
			Advice:  "do not mount the socket; give the server only what it needs"})
	}
	if token := s.clusterToken(); token != "" {
		out = append(out, Finding{
			Message: fmt.Sprintf("the server %q gets a Kubernetes token (%s): its tools can act in the cluster as this machine does", s.ID, token),
			Advice:  "do not hand it on; in a pod that needs none, set automountServiceAccountToken to false"})
	}
	if directory := s.runDirectory(); directory != "" {
		out = append(out, Finding{
			Message: fmt.Sprintf("the server %q gets %s of this machine, where container engines have their sockets and clusters their tokens", s.ID, directory),
			Advice:  "give the server only the files that it needs"})
	}
	if base := path.Base(s.Command); slices.Contains([]string{"docker", "podman", "nerdctl"}, base) && slices.Contains(s.Args, "--privileged") {
		out = append(out, Finding{
			Message: fmt.Sprintf("the server %q starts a privileged container: its tools can become root on this machine", s.ID),
			Advice:  "remove --privileged"})
	}
	if len(s.Headers) > 0 && sentInClear(s.URL) {
		out = append(out, Finding{
			Message: fmt.Sprintf("the server %q gets its headers over http, readable on the way", s.ID),
			Advice:  "use an https address"})
	}
	return out
}

// runtimeSocket returns the name of a container engine's socket that the
// server is given in any way, or "".
func (s Server) runtimeSocket() string { return s.mentions(runtimeSockets) }

// clusterTokens are where a pod has its tokens, and a user those of a cluster.
var clusterTokens = []string{
	"/secrets/kubernetes.io", "serviceaccount/token", "/secrets/eks.amazonaws.com", "/secrets/azure/tokens", "/.kube/", "/.kube:", "kubeconfig",
	"/etc/kubernetes",
}

// clusterToken returns what names a Kubernetes token that the server is given in
// any way, or "".
func (s Server) clusterToken() string {
	if token := s.mentions(clusterTokens); token != "" {
		return token
	}
	if _, ok := s.Env["KUBECONFIG"]; ok {
		return "KUBECONFIG"
	}
	return ""
}

// mentions returns the first of the parts that stands in anything that the
// server is given, or "".
func (s Server) mentions(parts []string) string {
	texts := append([]string{s.Command, s.URL, s.Cwd}, s.Args...)
	for _, secret := range s.Env {
		texts = append(texts, secret.Reveal())
	}
	for _, part := range parts {
		if slices.ContainsFunc(texts, func(t string) bool { return strings.Contains(t, part) }) {
			return part
		}
	}
	return ""
}

// runDirectory returns the directory of sockets and tokens that the server is
// given as a whole, as an argument or mounted into its container, or "".
func (s Server) runDirectory() string {
	mounted := false // the argument before this one takes a mount
	for _, arg := range s.Args {
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
			directory, _, _ := strings.Cut(value, ":")
			directory = path.Clean(strings.TrimPrefix(directory, "file://"))
			if directory == "/run" || directory == "/var/run" || isMount && (directory == "/" || directory == "/var") {
				return directory
			}
		}
		mounted = slices.Contains([]string{"-v", "--volume", "--mount"}, arg)
	}
	return ""
}

// sentInClear tells whether requests to address leave the machine unencrypted.
func sentInClear(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() != "localhost" && (ip == nil || !ip.IsLoopback())
}
