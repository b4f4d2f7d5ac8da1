package bom

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"

	"github.com/airlock-mcp/airlock/images"
)

// The references of components within a bill.
const (
	refRun   = "run"
	refModel = "model"
	refHost  = "host"
)

// WriteCycloneDX writes the bill as a CycloneDX 1.6 document in JSON (ECMA-424): an
// ML-BOM, whose model is what the host has announced. Two bills of one run differ in
// their timestamp alone.
func (b *Bill) WriteCycloneDX(w io.Writer, now time.Time) error {
	document := cdx.NewBOM()
	document.SerialNumber = "urn:uuid:" + uuidOf(b.Run.Hash+b.Run.RunID)
	components, services := b.components(), b.services()
	document.Metadata = &cdx.Metadata{
		Timestamp: now.UTC().Format(time.RFC3339),
		Tools: &cdx.ToolsChoice{Components: &[]cdx.Component{{
			Type: cdx.ComponentTypeApplication, Name: "airlock", Version: b.Airlock,
		}}},
		Component: b.run(),
	}
	document.Components, document.Services = &components, &services
	var refs []string
	for _, c := range components {
		refs = append(refs, c.BOMRef)
	}
	for _, s := range services {
		refs = append(refs, s.BOMRef)
	}
	document.Dependencies = &[]cdx.Dependency{{Ref: refRun, Dependencies: &refs}}
	encoder := cdx.NewBOMEncoder(w, cdx.BOMFileFormatJSON)
	encoder.SetPretty(true)
	encoder.SetEscapeHTML(false)
	if err := encoder.EncodeVersion(document, cdx.SpecVersion1_6); err != nil {
		return fmt.Errorf("writing the bill of %q: %w", b.Run.RunID, err)
	}
	return nil
}

// run is the run itself.
func (b *Bill) run() *cdx.Component {
	c := &cdx.Component{BOMRef: refRun, Type: cdx.ComponentTypeApplication, Name: b.Run.RunID,
		Description: "A program that was run in a sandbox of Airlock"}
	c.Hashes = hashesOf(b.Run.CodeHash)
	c.Properties = properties("began", b.Run.Time, "language", b.Run.Language, "tools_snapshot", b.Run.Snapshot,
		"audit_record", b.Run.Hash)
	return c
}

func (b *Bill) components() []cdx.Component {
	components := []cdx.Component{}
	if b.Model != "" {
		components = append(components, cdx.Component{
			BOMRef: refModel, Type: cdx.ComponentTypeMachineLearningModel, Name: b.Model,
			Properties: properties("announced_by", "host"),
		})
	}
	if b.Host != "" {
		name, version := lastWord(b.Host)
		components = append(components, cdx.Component{
			BOMRef: refHost, Type: cdx.ComponentTypeApplication, Name: name, Version: version,
			Properties: properties("announced_by", "host"),
		})
	}
	for _, image := range b.Images {
		components = append(components, imageComponent(image))
	}
	for _, e := range b.Engines {
		components = append(components, cdx.Component{
			BOMRef: "engine:" + e.Name, Type: cdx.ComponentTypeLibrary, Group: distribution, Name: e.Name,
			Version: e.Version,
		})
	}
	for _, version := range b.Policies {
		components = append(components, cdx.Component{
			BOMRef: "policies:" + version, Type: cdx.ComponentTypeData, Name: "policies", Version: version,
			Hashes: hashesOf(version),
		})
	}
	return components
}

func imageComponent(image Image) cdx.Component {
	ref := "image:" + image.Name + "@" + image.Digest
	c := cdx.Component{BOMRef: ref, Type: cdx.ComponentTypeContainer, Name: image.Name, Version: image.Digest,
		Hashes: hashesOf(image.Digest)}
	if len(image.Packages) == 0 {
		return c
	}
	var parts []cdx.Component
	for _, p := range image.Packages {
		parts = append(parts, cdx.Component{
			BOMRef: ref + "/" + string(p.Source) + "/" + p.Name, Type: cdx.ComponentTypeLibrary, Name: p.Name,
			Version: p.Version,
			Hashes:  hashesOf(p.Digest), PackageURL: purl(p),
		})
	}
	c.Components = &parts
	return c
}

// services returns the called tools as services.
func (b *Bill) services() []cdx.Service {
	services := []cdx.Service{}
	for i, t := range b.Tools {
		services = append(services, cdx.Service{
			BOMRef: fmt.Sprintf("tool:%d:%s", i, t.fullName()), Group: t.Server, Name: t.Name, Version: t.Digest,
			Properties: properties("definition_digest", t.Digest),
		})
	}
	return services
}

// purl is the package URL (ECMA-427) of a package.
func purl(p images.Package) string {
	name := url.PathEscape(p.Name)
	switch p.Source {
	case images.FromDebian:
		return "pkg:deb/debian/" + name + "@" + url.PathEscape(p.Version)
	case images.FromNPM:
		name = strings.ReplaceAll(name, "%2F", "/") // a scope is a namespace
		return "pkg:npm/" + strings.ReplaceAll(name, "@", "%40") + "@" + url.PathEscape(p.Version)
	}
	return "pkg:" + string(p.Source) + "/" + name + "@" + url.PathEscape(p.Version)
}

// hashesOf reads a digest as Airlock writes it: an algorithm, and hexadecimal digits or,
// after "sha512-", base64. nil for anything else.
func hashesOf(digest string) *[]cdx.Hash {
	if value, ok := strings.CutPrefix(digest, "sha256:"); ok && len(value) == 2*sha256.Size {
		return &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: value}}
	}
	if value, ok := strings.CutPrefix(digest, "sha512-"); ok {
		if sum, err := base64.StdEncoding.DecodeString(value); err == nil {
			return &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA512, Value: hex.EncodeToString(sum)}}
		}
	}
	return nil
}

// properties are pairs of a name and a value; those without a value are left out.
func properties(pairs ...string) *[]cdx.Property {
	var all []cdx.Property
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			all = append(all, cdx.Property{Name: "airlock:" + pairs[i], Value: pairs[i+1]})
		}
	}
	if all == nil {
		return nil
	}
	return &all
}

func lastWord(text string) (before, last string) {
	at := strings.LastIndexByte(text, ' ')
	if at < 0 {
		return text, ""
	}
	return text[:at], text[at+1:]
}

// uuidOf returns the UUID, version 8 (RFC 9562, section 5.8), that a text has always.
func uuidOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	b := sum[:16]
	b[6], b[8] = b[6]&0x0f|0x80, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
