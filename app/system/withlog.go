package system

import (
	"errors"
	"fmt"

	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/app/setup"
	"github.com/airlock-mcp/airlock/audit"
)

// withLog opens the audit log for a command that does not open a system. Other processes may have
// the log open at the same time.
func withLog(c *config.Config, use func(*audit.Log) error) (err error) {
	directories, err := setup.FindDirectories(c)
	if err != nil {
		return err
	}
	log, err := audit.Open(directories.Audit, auditOptions(directories, c.Audit))
	if err != nil {
		return fmt.Errorf("opening the audit log: %w", err)
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	return use(log)
}
