// Package bom creates the bill of materials of a run from the audit log: the model and the
// agent host, as the host announced them; the image with its packages; the verification
// engines that were used; the called tools with the digests of their definitions; and the
// policies in force. It omits everything that the log does not contain.
package bom

import (
	"errors"
	"slices"
	"strings"

	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/images"
)

// Options contain data from other sources than the log.
type Options struct {
	Version string // Airlock's own
	// Images are the images on this machine. The packages of those whose digest the
	// run recorded are listed.
	Images []images.Record
}

// Bill is what a run was made of. Lists are in the order of their names, without repeats.
type Bill struct {
	Run     audit.Record // its start
	Airlock string       // the version that wrote the bill
	Model   string       // as announced; may be empty
	Host    string       // announced name and version; may be empty
	Images  []Image
	Engines []Engine
	Tools   []Tool
	// Policies are the digests of the rules that were in force when calls were decided.
	Policies []string
}

// Image is the image of a sandbox that the run used.
type Image struct {
	Name     string
	Digest   string           // "sha256:…" of the OCI manifest
	Packages []images.Package // nil if the image no longer exists
}

// Engine is an engine that was asked.
type Engine struct {
	Name    string // as sdk/python calls its module
	Version string // of the distribution airlock-verify in the image; empty if unknown
}

// Tool is a tool that was called, or that the risk gateway decided about.
type Tool struct {
	Server string // empty for Airlock's tools
	Name   string
	Digest string // of its definition; empty for Airlock's tools
}

// errUnstarted is returned if the log does not contain the start of the run.
var errUnstarted = errors.New("the log does not have the start of the run: it never began, or the log begins after it")

// Of makes the bill of a run.
func Of(tree *audit.RunTree, opts Options) (*Bill, error) {
	if tree.Start == nil {
		return nil, errUnstarted
	}
	b := &Bill{Run: *tree.Start, Airlock: opts.Version, Model: tree.Start.Model, Host: tree.Start.Host}
	b.addImage(tree.Start.Image, opts.Images)
	for _, event := range tree.Events {
		b.addEvent(event, opts.Images)
	}
	for _, call := range tree.Calls {
		for _, r := range append(slices.Clone(call.Approvals), records(call.Intent, call.Outcome)...) {
			add(&b.Tools, Tool{r.ServerID, r.ToolName, r.DefinitionDigest}, r.ToolName != "" &&
				r.DefinitionDigest != "")
			add(&b.Policies, r.PolicyVersion, r.PolicyVersion != "")
		}
	}
	slices.SortFunc(b.Images, func(a, b Image) int { return strings.Compare(a.Name+a.Digest, b.Name+b.Digest) })
	slices.SortFunc(b.Engines, func(a, b Engine) int { return strings.Compare(a.Name+a.Version, b.Name+b.Version) })
	slices.SortFunc(b.Tools,
		func(a, b Tool) int { return strings.Compare(a.fullName()+a.Digest, b.fullName()+b.Digest) })
	slices.Sort(b.Policies)
	return b, nil
}

// addEvent adds what a decision of the risk gateway, or a verdict, was made with.
func (b *Bill) addEvent(r audit.Record, built []images.Record) {
	if r.Engine != "" {
		packages := b.addImage(r.Image, built)
		add(&b.Engines, Engine{engineModules + r.Engine, versionOf(packages, distribution)}, true)
	}
	add(&b.Tools, Tool{Name: r.ToolName}, r.Kind == audit.KindDecision && r.ToolName != "")
}

const (
	engineModules = "qwed_new.engines."
	distribution  = "airlock-verify" // the Python distribution of the engines
)

// addImage adds an image, written NAME@DIGEST, and returns its packages.
func (b *Bill) addImage(image string, built []images.Record) []images.Package {
	name, digest, ok := strings.Cut(image, "@")
	if !ok {
		return nil
	}
	var packages []images.Package
	for _, record := range built {
		if record.Digest == digest {
			packages = record.Packages
		}
	}
	if !slices.ContainsFunc(b.Images, func(other Image) bool { return other.Digest == digest }) {
		b.Images = append(b.Images, Image{name, digest, packages})
	}
	return packages
}

func versionOf(packages []images.Package, name string) string {
	for _, p := range packages {
		if p.Name == name {
			return p.Version
		}
	}
	return ""
}

// add adds what is wanted and not there yet.
func add[T comparable](to *[]T, value T, wanted bool) {
	if wanted && !slices.Contains(*to, value) {
		*to = append(*to, value)
	}
}

func records(all ...*audit.Record) (there []audit.Record) {
	for _, r := range all {
		if r != nil {
			there = append(there, *r)
		}
	}
	return there
}

// fullName is the tool's name with its server's.
func (t Tool) fullName() string {
	if t.Server == "" {
		return t.Name
	}
	return t.Server + "/" + t.Name
}
