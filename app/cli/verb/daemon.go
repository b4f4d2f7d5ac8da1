package verb

import (
	"errors"

	"github.com/airlock-mcp/airlock/app/join"
)

// NoDaemon adds the hint to an error of verbs that need a daemon.
func NoDaemon(err error) error {
	if errors.Is(err, join.ErrNone) {
		return WithHint(join.ErrNone, "airlock serve --detach", ExitFailed)
	}
	return err
}
