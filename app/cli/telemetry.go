package cli

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	"github.com/airlock-mcp/airlock/internal/telemetry/export"
)

// beginExport exports traces, metrics and logs where the environment says where to;
// with scraped, metrics can be read in any case. The logger writes to where local does,
// and to where logs are exported. The caller calls end when nothing is left to be told.
func beginExport(ctx context.Context, local *slog.Logger, scraped bool) (e *export.Exporter, logger *slog.Logger, end func(), _ error) {
	var once sync.Once
	e, err := export.Open(ctx, export.Options{Version: version, Prometheus: scraped, Failed: func(err error) {
		once.Do(func() { local.WarnContext(ctx, "telemetry is lost: it cannot be exported", "error", err) })
	}})
	var wrong *export.ConfigError
	if errors.As(err, &wrong) {
		err = &usageError{wrong.Error(), wrong.Hint()}
	}
	if err != nil {
		return nil, nil, nil, err
	}
	end = func() {
		if err := e.Close(ctx); err != nil {
			once.Do(func() { local.WarnContext(ctx, "telemetry is lost: it cannot be exported", "error", err) })
		}
	}
	return e, e.Logger(local), end, nil
}
