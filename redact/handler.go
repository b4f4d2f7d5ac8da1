package redact

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
)

// Handler returns a log handler that cleans messages and attributes before it passes them to next.
// Logs contain errors of servers, which can contain secrets.
func (r *Redactor) Handler(next slog.Handler) slog.Handler { return &handler{r, next} }

type handler struct {
	redactor *Redactor
	next     slog.Handler
}

// Enabled calls the next handler.
func (h *handler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.next.Enabled(ctx, level)
}

// Handle passes a cleaned copy of the record to the next handler.
func (h *handler) Handle(ctx context.Context, record slog.Record) error {
	cleaned := slog.NewRecord(record.Time, record.Level, h.redactor.Text(record.Message), record.PC)
	record.Attrs(func(a slog.Attr) bool {
		cleaned.AddAttrs(h.attr(a))
		return true
	})
	return h.next.Handle(ctx, cleaned)
}

// WithAttrs cleans the attributes and adds them to the next handler.
func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	attrs = slices.Clone(attrs)
	for i := range attrs {
		attrs[i] = h.attr(attrs[i])
	}
	return &handler{h.redactor, h.next.WithAttrs(attrs)}
}

// WithGroup opens a group in the next handler.
func (h *handler) WithGroup(name string) slog.Handler {
	return &handler{h.redactor, h.next.WithGroup(name)}
}

func (h *handler) attr(a slog.Attr) slog.Attr {
	value := a.Value.Resolve()
	switch value.Kind() {
	case slog.KindString:
		value = slog.StringValue(h.redactor.Text(value.String()))
	case slog.KindGroup:
		group := slices.Clone(value.Group())
		for i := range group {
			group[i] = h.attr(group[i])
		}
		value = slog.GroupValue(group...)
	case slog.KindAny: // errors, lists and other values, as text
		value = slog.StringValue(h.redactor.Text(fmt.Sprint(value.Any())))
	}
	return slog.Attr{Key: h.redactor.Text(a.Key), Value: value}
}

// Text is Bytes for a string, without findings.
func (r *Redactor) Text(text string) string {
	cleaned, _ := r.Bytes([]byte(text))
	return string(cleaned)
}

// Names returns decoded JSON with cleaned member names, for records that show names and not values.
// It does not change its argument.
func (r *Redactor) Names(v any) any {
	switch v := v.(type) {
	case map[string]any:
		named := make(map[string]any, len(v))
		for name, value := range v {
			clean := r.Text(name)
			for n := 2; named[clean] != nil; n++ {
				clean = fmt.Sprintf("%s (%d)", r.Text(name), n)
			}
			named[clean] = r.Names(value)
		}
		return named
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = r.Names(v[i])
		}
		return list
	}
	return v
}
