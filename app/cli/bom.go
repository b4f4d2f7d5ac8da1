package cli

import (
	"time"

	"github.com/airlock-mcp/airlock/app/bom"
	"github.com/airlock-mcp/airlock/images"
)

type bomVerb struct {
	auditFlags
	RunID  string `arg:"" name:"run" help:"The run's ID, or the beginning of it."`
	Format string `enum:"manifest,cyclonedx" default:"manifest" help:"manifest, or cyclonedx for a CycloneDX 1.6 ML-BOM."`
	JSON   bool   `name:"json" help:"Changes nothing: what is printed is JSON already."`
}

// Run prints the bill of materials of a run, from the audit log.
func (v *bomVerb) Run(s *streams) error {
	directories, err := v.find()
	if err != nil {
		return err
	}
	tree, err := findRun(directories.Audit, v.RunID)
	if err != nil {
		return err
	}
	bill, err := bom.Of(tree, bom.Options{Version: version, Images: images.Records(directories.Home)})
	if err != nil {
		return err
	}
	if v.Format == "cyclonedx" {
		return bill.WriteCycloneDX(s.out, time.Now())
	}
	manifest, err := bill.Manifest(time.Now())
	if err != nil {
		return err
	}
	return printLine(s.out, manifest)
}
