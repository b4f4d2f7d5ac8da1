package config

import (
	"fmt"
	"net/url"
	"path"
	"slices"

	"github.com/airlock-mcp/airlock/internal/reach"
)

// Finding is a warning about a valid configuration.
type Finding struct {
	File    string
	Line    int // from 1; 0 if there is no position
	Column  int
	Message string // one sentence
	Advice  string // what to do about it; may be empty
}

// String returns "airlock.yaml:12:3: message".
func (f Finding) String() string { return place(f.File, f.Line, f.Column) + f.Message }

// Hint returns what to do about it, or "".
func (f Finding) Hint() string { return f.Advice }

// Lint returns the findings of Load and the risks of the servers, in the order of the file.
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

// risks returns the findings about one server, without positions.
func (s Server) risks() []Finding {
	var out []Finding
	if socket := s.runtimeSocket(); socket != "" {
		out = append(out, Finding{
			Message: fmt.Sprintf(
				"the server %q gets the container engine's socket (%s): its tools can become root on this machine",
				s.ID, socket),
			Advice: "do not mount the socket; give the server only what it needs"})
	}
	if token := s.clusterToken(); token != "" {
		out = append(out, Finding{
			Message: fmt.Sprintf(
				"the server %q gets a Kubernetes token (%s): its tools can act in the cluster as this machine does",
				s.ID, token),
			Advice: "do not hand it on; in a pod that needs none, set automountServiceAccountToken to false"})
	}
	if directory := s.runDirectory(); directory != "" {
		out = append(out, Finding{
			Message: fmt.Sprintf(
				"the server %q gets %s of this machine, where container engines have their sockets and clusters "+
					"their tokens", s.ID, directory),
			Advice: "give the server only the files that it needs"})
	}
	if base := path.Base(s.Command); slices.Contains([]string{"docker", "podman", "nerdctl"}, base) &&
		slices.Contains(s.Args, "--privileged") {
		out = append(out, Finding{
			Message: fmt.Sprintf(
				"the server %q starts a privileged container: its tools can become root on this machine", s.ID),
			Advice: "remove --privileged"})
	}
	if len(s.Headers) > 0 && sentInClear(s.URL) {
		out = append(out, Finding{
			Message: fmt.Sprintf("the server %q gets its headers over http, readable on the way", s.ID),
			Advice:  "use an https address"})
	}
	return out
}

// sentInClear reports whether requests to address leave the machine unencrypted.
func sentInClear(address string) bool {
	u, err := url.Parse(address)
	return err == nil && u.Scheme == "http" && !reach.IsLoopback(u.Hostname())
}
