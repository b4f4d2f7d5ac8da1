package runs

import (
	"time"

	"github.com/airlock-mcp/airlock/app/bom"
	"github.com/airlock-mcp/airlock/app/cli/verb"
	"github.com/airlock-mcp/airlock/images"
)

// BOM is airlock bom.
type BOM struct {
	verb.AuditFlags
	RunID  string `arg:"" name:"run" help:"The run's ID, or the beginning of it."`
	Format string `enum:"manifest,cyclonedx" default:"manifest" help:"manifest, or cyclonedx for a CycloneDX 1.6 ML-BOM."`
	JSON   bool   `name:"json" help:"Changes nothing: what is printed is JSON already."`
}

// Run prints the bill of materials of a run, from the audit log.
func (v *BOM) Run(s *verb.Streams) error {
	directories, err := v.Find(s.Err)
	if err != nil {
		return err
	}
	tree, err := verb.FindRun(directories.Audit, v.RunID)
	if err != nil {
		return err
	}
	bill, err := bom.Of(tree, bom.Options{Version: verb.Version, Images: images.Records(directories.Home)})
	if err != nil {
		return err
	}
	if v.Format == "cyclonedx" {
		return bill.WriteCycloneDX(s.Out, time.Now())
	}
	manifest, err := bill.Manifest(time.Now())
	if err != nil {
		return err
	}
	return verb.PrintLine(s.Out, manifest)
}
