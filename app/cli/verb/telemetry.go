package verb

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	"github.com/airlock-mcp/airlock/internal/telemetry/export"
)

// BeginExport starts the export of traces, metrics and logs to the destinations in the
// environment. If scraped is true, metrics can be scraped even without a destination. The logger
// writes to local and to the exported logs. The caller must call end after the last log.
func BeginExport(ctx context.Context, local *slog.Logger, scraped bool) (e *export.Exporter, logger *slog.Logger,
	end func(), _ error) {
	var once sync.Once
	e, err := export.Open(ctx, export.Options{Version: Version, Prometheus: scraped, Failed: func(err error) {
		once.Do(func() { local.WarnContext(ctx, "telemetry is lost: it cannot be exported", "error", err) })
	}})
	if wrong, ok := errors.AsType[*export.ConfigError](err); ok {
		err = &UsageError{wrong.Error(), wrong.Hint()}
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
