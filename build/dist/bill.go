package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/CycloneDX/cyclonedx-go"
)

// bill writes the software bill of materials of an architecture's programs: each
// with its digest and the Go modules that its compiler recorded (CycloneDX 1.6).
func (r *release) bill(name, dir string) (err error) {
	programs, err := readPrograms(dir)
	if err != nil {
		return err
	}
	b := cyclonedx.NewBOM()
	b.SpecVersion, b.JSONSchema = cyclonedx.SpecVersion1_6, "http://cyclonedx.org/schema/bom-1.6.schema.json"
	b.Metadata = &cyclonedx.Metadata{
		Timestamp: r.time.Format(time.RFC3339),
		Component: &cyclonedx.Component{
			BOMRef: "airlock", Type: cyclonedx.ComponentTypeApplication, Name: "airlock", Version: r.version,
			Licenses: &cyclonedx.Licenses{{License: &cyclonedx.License{ID: "Apache-2.0"}}},
		},
	}
	components := map[string]cyclonedx.Component{}
	needs := map[string][]string{}
	for _, p := range programs {
		content, err := os.ReadFile(filepath.Join(dir, p.name))
		if err != nil {
			return err
		}
		sum := sha256.Sum256(content)
		ref := "program:" + p.name
		components[ref] = cyclonedx.Component{
			BOMRef: ref, Type: cyclonedx.ComponentTypeApplication, Name: p.name, Version: r.version,
			Hashes: &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: hex.EncodeToString(sum[:])}},
		}
		needs["airlock"] = append(needs["airlock"], ref)
		standard := library("std", strings.TrimPrefix(p.info.GoVersion, "go"), "")
		components[standard.BOMRef] = standard
		needs[ref] = append(needs[ref], standard.BOMRef)
		for _, m := range p.modules() {
			c := library(m.Path, m.Version, m.Sum)
			components[c.BOMRef] = c
			needs[ref] = append(needs[ref], c.BOMRef)
		}
	}
	b.Components, b.Dependencies = &[]cyclonedx.Component{}, &[]cyclonedx.Dependency{}
	for _, ref := range sortedKeys(components) {
		*b.Components = append(*b.Components, components[ref])
	}
	for _, ref := range sortedKeys(needs) {
		on := slices.Compact(slices.Sorted(slices.Values(needs[ref])))
		*b.Dependencies = append(*b.Dependencies, cyclonedx.Dependency{Ref: ref, Dependencies: &on})
	}
	f, err := os.Create(filepath.Join(r.out, name))
	if err != nil {
		return err
	}
	return errors.Join(cyclonedx.NewBOMEncoder(f, cyclonedx.BOMFileFormatJSON).SetPretty(true).Encode(b), f.Close())
}

// library returns a Go module as a component. sum is its hash in go.sum, h1:…, or "".
func library(path, version, sum string) cyclonedx.Component {
	purl := "pkg:golang/" + path + "@" + version
	c := cyclonedx.Component{BOMRef: purl, Type: cyclonedx.ComponentTypeLibrary, Name: path, Version: version,
		PackageURL: purl}
	if sum != "" {
		c.Properties = &[]cyclonedx.Property{{Name: "go.sum", Value: sum}}
	}
	return c
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
