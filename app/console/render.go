package console

import (
	"bytes"
	"context"
	"embed"
	"fmt"
	"html/template"
	"io/fs"
	"log/slog"
	"mime"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/airlock-mcp/airlock/internal/telemetry"
	"github.com/airlock-mcp/airlock/internal/truncate"
	"github.com/airlock-mcp/airlock/internal/visible"
)

//go:embed templates/*.html
var templateFiles embed.FS

// frameFiles are part of every page.
var frameFiles = []string{"templates/frame.html"}

// parseTemplates returns the pages' templates by the names of their files, each
// with the frame.
func parseTemplates() (map[string]*template.Template, error) {
	frame, err := template.New("frame.html").Funcs(functions).ParseFS(templateFiles, frameFiles...)
	if err != nil {
		return nil, fmt.Errorf("reading the frame of the console: %w", err)
	}
	files, err := fs.Glob(templateFiles, "templates/*.html")
	if err != nil {
		return nil, err
	}
	parsed := map[string]*template.Template{}
	for _, file := range files {
		one, err := frame.Clone()
		if err == nil {
			_, err = one.ParseFS(templateFiles, file)
		}
		if err != nil {
			return nil, fmt.Errorf("reading a page of the console: %w", err)
		}
		parsed[strings.TrimSuffix(path.Base(file), ".html")] = one
	}
	return parsed, nil
}

// functions are those that templates may call.
var functions = template.FuncMap{
	"line":      visible.Line,
	"lines":     visible.Lines,
	"clip":      func(n int, text string) string { return truncate.Characters(visible.Line(text), n) },
	"clipLines": func(n int, text string) string { return truncate.Characters(visible.Lines(text), n) },
	"tool":      toolPath,
	"time":      func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
	"segment":   url.PathEscape, // of the path of an address
	"clock":     clock,
	"moment":    moment,
}

// moment reads a time of RFC 3339. It returns the zero time for other texts.
func moment(text string) time.Time {
	at, _ := time.Parse(time.RFC3339, text)
	return at
}

// clock is a time in UTC, to the second.
func clock(t time.Time) string { return t.UTC().Format(time.DateTime) }

// frame is the data of the template of a page.
type frame struct {
	Title   string
	Path    string // of the page
	Who     string // the signed-in user, or ""
	Scopes  []string
	Nav     []navigation
	CSRF    string     // for forms
	Nodes   []nodeLink // of a cluster
	Notices []string   // shown once
	Data    any        // the page's own
}

// navigation is one entry.
type navigation struct {
	Name, Path string
	Here       bool
	Waits      bool // the entry has a badge with the number of questions that wait
	Waiting    int
}

// answer sends the view of a page.
func (c *Console) answer(w http.ResponseWriter, q *query, name string, v view) {
	switch {
	case v.redirect != "":
		w.Header().Set("Location", localPath(v.redirect))
		w.WriteHeader(http.StatusSeeOther)
	case v.file != nil:
		v.file.send(w)
	case v.stream != nil:
		v.stream.send(c, w, q)
	default:
		c.render(w, q, name, v)
	}
}

// render executes a template completely before sending anything, so that a failure leads
// to an error page and never to half a page.
func (c *Console) render(w http.ResponseWriter, q *query, name string, v view) {
	f := frame{Title: v.title, Data: v.data}
	part, ctx := v.part, context.Background()
	if q != nil {
		ctx = q.Context()
		f.Path, f.Who, f.Scopes, f.CSRF = q.URL.Path, q.who.Name(), shownScopes(q.who.Scopes), q.session.form
		if part == "" {
			f.Nav, f.Nodes, f.Notices = c.navigation(q), c.nodeLinks(q), q.session.takeNotices()
		}
	}
	if part == "" {
		part = "frame"
	}
	var out bytes.Buffer
	if err := c.templates[name].ExecuteTemplate(&out, part, f); err != nil {
		c.opts.Logger.ErrorContext(ctx, "a page of the console could not be made", slog.String(telemetry.KeyPath, name),
			slog.Any(telemetry.KeyError, err))
		http.Error(w, "the page could not be made; the log of airlock serve shows why", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if v.status != 0 {
		w.WriteHeader(v.status)
	}
	_, _ = w.Write(out.Bytes()) // an error means that the client has disconnected
}

// navigation lists the sections that the caller may see.
func (c *Console) navigation(q *query) []navigation {
	var list []navigation
	for _, s := range c.sections {
		if s.name == "" || !q.may(s.scope) {
			continue
		}
		here := q.URL.Path == s.path || strings.HasPrefix(q.URL.Path, strings.TrimSuffix(s.path, "/")+"/")
		entry := navigation{Name: s.name, Path: s.path, Here: here, Waits: s.template == "questions"}
		if entry.Waits {
			entry.Waiting = c.waitingFor(q)
		}
		list = append(list, entry)
	}
	return list
}

// download is a file that browsers save and do not show. Browsers must not guess its type or run
// it.
type download struct {
	name    string
	content []byte
	isText  bool
}

func (d *download) send(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Content-Type", "application/octet-stream")
	if d.isText {
		h.Set("Content-Type", "text/plain; charset=utf-8")
	}
	h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": d.name}))
	h.Set("Content-Security-Policy", "sandbox; default-src 'none'; frame-ancestors 'none'")
	h.Set("Content-Length", strconv.Itoa(len(d.content)))
	_, _ = w.Write(d.content) // an error means that the client has disconnected
}
