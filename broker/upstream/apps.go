package upstream

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/airlock-mcp/airlock/catalog"
)

// Limits on the apps of a server, which are read whenever its lists are.
const (
	maxApps    = 100
	appsPeriod = 10 * time.Second // for all of them
)

// apps reads the apps that a server lists or that its tools name, and adds a description of their content to their
// definitions, so that it is pinned with them. An app that cannot be read is left out with a warning, because its tools
// work without it.
func (s *session) apps(ctx context.Context, serverID string, l *listing) {
	uris := catalog.AppURIs(l.tools, l.features)
	if len(uris) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, appsPeriod)
	defer cancel()
	for n, uri := range uris {
		var listed json.RawMessage
		l.features = slices.DeleteFunc(l.features, func(f catalog.Tool) bool {
			is := f.Kind == catalog.KindResource && f.Identifier() == uri
			if is {
				listed = f.Raw
			}
			return is
		})
		if n == maxApps {
			l.warnings = append(l.warnings, fmt.Sprintf("of %d apps only the first %d are used", len(uris), maxApps))
		}
		if n >= maxApps {
			continue
		}
		definition, err := s.app(ctx, uri, listed)
		if err != nil {
			l.warnings = append(l.warnings, fmt.Sprintf("the app %s is not used: %v", catalog.Quote(uri), err))
			continue
		}
		found, excluded := catalog.ParseFeatures(serverID, catalog.KindResource, []json.RawMessage{definition})
		l.features, l.warnings = append(l.features, found...), append(l.warnings, excluded...)
	}
}

// app returns the definition of one app.
func (s *session) app(ctx context.Context, uri string, listed json.RawMessage) (json.RawMessage, error) {
	quoted, err := json.Marshal(uri)
	if err != nil {
		return nil, err
	}
	result, err := s.fetch(ctx, methodReadResource, map[string]json.RawMessage{"uri": quoted})
	if err != nil {
		return nil, err
	}
	return catalog.DefineApp(uri, listed, result)
}

// splitApps moves the tools that only apps call to the features: code and models do not see them. They come first,
// because the cache of lists has the tools before everything else. If the server has no app, nobody else could call
// these tools, so code calls them like others.
func (l *listing) splitApps() {
	if !slices.ContainsFunc(l.features, func(f catalog.Tool) bool { return f.IsApp() }) {
		for i := range l.tools {
			l.tools[i].UI.OnlyApps = false
		}
		return
	}
	var onlyApps []catalog.Tool
	l.tools, onlyApps = catalog.SplitApps(l.tools)
	l.features = append(onlyApps, l.features...)
}
