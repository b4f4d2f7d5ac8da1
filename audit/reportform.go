package audit

import (
	"bufio"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/airlock-mcp/airlock/internal/visible"
)

// ReportForm is a form in which a report is written.
type ReportForm string

// The forms of a report.
const (
	ReportTable ReportForm = "table"
	ReportCSV   ReportForm = "csv"
	ReportJSON  ReportForm = "json" // one object; the rows are lines in it
	ReportHTML  ReportForm = "html" // one page without scripts and other files
)

// ReportForms lists all forms.
func ReportForms() []ReportForm { return []ReportForm{ReportTable, ReportCSV, ReportJSON, ReportHTML} }

// maxCell is the most characters of a cell on a terminal.
const maxCell = 60

// WriteRows writes a report. Rows are written as they are read.
func WriteRows(w io.Writer, dir string, form ReportForm, opts ReportOptions) error {
	out := bufio.NewWriter(w)
	var err error
	switch form {
	case ReportTable:
		err = writeTable(out, dir, opts)
	case ReportCSV:
		err = writeCSV(out, dir, opts)
	case ReportJSON:
		err = writeJSON(out, dir, opts)
	case ReportHTML:
		err = writeHTML(out, dir, opts)
	default:
		err = fmt.Errorf("reporting: there is no format %q", form)
	}
	if err != nil {
		return err
	}
	return out.Flush()
}

func decimal(n uint64) string { return strconv.FormatUint(n, 10) }

func joined(list []string) string { return strings.Join(list, " ") }

// titles are the names of the columns.
func titles() (names []string) {
	for _, c := range columns() {
		names = append(names, c.name)
	}
	return names
}

// writeTable writes the columns that answer the question, as wide as in the first rows.
func writeTable(w io.Writer, dir string, opts ReportOptions) error {
	t := &tableRows{to: w}
	t.add(titleRow())
	n := 0
	err := EachRow(dir, opts, func(r Row) error {
		n++
		var cells []string
		for _, c := range columns() {
			switch {
			case c.name == "time":
				cells = append(cells, shortTime(r.Time))
			case c.table:
				cells = append(cells, visible.Clip(c.of(r), maxCell))
			}
		}
		return t.add(cells)
	})
	if err != nil {
		return err
	}
	if err := t.flush(); err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%d in all\n", n)
	return err
}

func titleRow() (names []string) {
	for _, c := range columns() {
		if c.table {
			names = append(names, strings.ToUpper(c.name))
		}
	}
	return names
}

// tableRows aligns rows. The first few determine the widths, so that the rest can be streamed.
type tableRows struct {
	to     io.Writer
	first  [][]string
	widths []int
}

const measuredRows = 500

func (t *tableRows) add(cells []string) error {
	if t.widths != nil {
		return t.write(cells)
	}
	t.first = append(t.first, cells)
	if len(t.first) < measuredRows {
		return nil
	}
	return t.flush()
}

// flush writes the measured rows.
func (t *tableRows) flush() error {
	if t.widths != nil {
		return nil
	}
	t.widths = make([]int, len(titleRow()))
	for _, row := range t.first {
		for i, cell := range row {
			t.widths[i] = max(t.widths[i], len([]rune(cell)))
		}
	}
	for _, row := range t.first {
		if err := t.write(row); err != nil {
			return err
		}
	}
	return nil
}

func (t *tableRows) write(cells []string) error {
	var line strings.Builder
	for i, cell := range cells {
		fmt.Fprintf(&line, "%-*s  ", t.widths[i], cell)
	}
	_, err := fmt.Fprintln(t.to, strings.TrimRight(line.String(), " "))
	return err
}

// writeCSV writes all columns, in the form of RFC 4180 with every cell in quotes, so that no
// separator that a spreadsheet may prefer splits one.
func writeCSV(w io.Writer, dir string, opts ReportOptions) error {
	if err := writeCells(w, titles()); err != nil {
		return err
	}
	return EachRow(dir, opts, func(r Row) error {
		var cells []string
		for _, c := range columns() {
			cells = append(cells, c.of(r))
		}
		return writeCells(w, cells)
	})
}

func writeCells(w io.Writer, cells []string) error {
	for i, text := range cells {
		cells[i] = `"` + strings.ReplaceAll(harmless(text), `"`, `""`) + `"`
	}
	_, err := fmt.Fprintf(w, "%s\r\n", strings.Join(cells, ","))
	return err
}

// harmless returns a text that a spreadsheet does not execute: one that begins like a formula gets
// an apostrophe in front.
func harmless(text string) string {
	text = visible.Line(text)
	first, _ := utf8.DecodeRuneInString(strings.TrimLeft(text, " '\""))
	if strings.ContainsRune("=+-@|%\\＝＋－＠", first) {
		return "'" + text
	}
	return text
}

func writeJSON(w io.Writer, dir string, opts ReportOptions) error {
	head, err := json.Marshal(map[string]string{"since": rfc3339(opts.Since), "until": rfc3339(opts.Until),
		"principal": opts.Principal, "server": opts.Server})
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "{\"selected\":%s,\"rows\":[", head) // Flush returns an error of w
	n := 0
	err = EachRow(dir, opts, func(r Row) error {
		separator := ",\n"
		if n == 0 {
			separator = "\n"
		}
		n++
		text, err := line(r, nil)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(w, "%s%s", separator, escaped(strings.TrimSuffix(string(text), "\n")))
		return err
	})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "\n],\"count\":%d}\n", n)
	return err
}

// escaped returns JSON in which characters that are not visible are escapes.
func escaped(text string) string {
	var b strings.Builder
	for _, r := range text {
		if r < utf8.RuneSelf || visible.Is(r) {
			b.WriteRune(r)
			continue
		}
		for _, unit := range utf16.AppendRune(nil, r) {
			fmt.Fprintf(&b, `\u%04x`, unit)
		}
	}
	return b.String()
}

func rfc3339(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

const htmlTop = `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Airlock report</title>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<style>body{font:14px system-ui,sans-serif}table{border-collapse:collapse}
th,td{border:1px solid #999;padding:.2em .4em;text-align:left;vertical-align:top;overflow-wrap:anywhere}</style>
</head><body><h1>Who sent what where, on whose behalf, and who approved it</h1>
<p>%s</p><table><thead><tr>`

func writeHTML(w io.Writer, dir string, opts ReportOptions) error {
	fmt.Fprintf(w, htmlTop, html.EscapeString(visible.Text(opts.describe()))) // Flush returns an error of w
	for _, name := range titles() {
		fmt.Fprintf(w, "<th scope=\"col\">%s</th>", name)
	}
	fmt.Fprint(w, "</tr></thead><tbody>\n")
	n := 0
	err := EachRow(dir, opts, func(r Row) error {
		n++
		var row strings.Builder
		for _, c := range columns() {
			fmt.Fprintf(&row, "<td>%s</td>", html.EscapeString(visible.Line(c.of(r))))
		}
		_, err := fmt.Fprintf(w, "<tr>%s</tr>\n", row.String())
		return err
	})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "</tbody></table><p>%d in all</p></body></html>\n", n)
	return err
}

// describe names what was selected.
func (o ReportOptions) describe() string {
	parts := []string{"all acts"}
	for _, part := range []struct{ label, value string }{
		{"since ", rfc3339(o.Since)}, {"until ", rfc3339(o.Until)}, {"on behalf of ", o.Principal},
		{"on server ", o.Server},
	} {
		if part.value != "" {
			parts = append(parts, part.label+part.value)
		}
	}
	return strings.Join(parts, ", ")
}
