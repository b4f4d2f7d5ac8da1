package verb

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/airlock-mcp/airlock/internal/tty"
)

// Behind returns the writer that finally receives the text that is written to w.
func Behind(w io.Writer) io.Writer {
	switch w := w.(type) {
	case *terminalText:
		return w.terminal
	case *cleanWriter:
		return w.to
	}
	return w
}

// IsTerminal reports whether w is a terminal.
func IsTerminal(w io.Writer) bool {
	file, ok := Behind(w).(*os.File)
	return ok && tty.Is(file)
}

// Widths of output in columns.
const (
	defaultWidth = 80 // of a terminal whose width is unknown
	leastWidth   = 20 // the minimum for which a table is laid out
)

// Width returns the number of columns of the terminal w. It returns 0 if w is not a terminal, so
// that programs get the whole text.
func Width(w io.Writer) int {
	file, ok := Behind(w).(*os.File)
	if !ok || !IsTerminal(file) {
		return 0
	}
	columns, _ := strconv.Atoi(os.Getenv("COLUMNS")) // 0 if it is not a number
	if size, err := tty.Control(file, func(fd int) (*unix.Winsize,
		error) {
		return unix.IoctlGetWinsize(fd, unix.TIOCGWINSZ)
	}); err == nil && size.Col > 0 {
		columns = int(size.Col)
	}
	if columns <= 0 {
		columns = defaultWidth
	}
	return max(columns, leastWidth)
}

// colours reports whether text for w is coloured. It is if w is a terminal and NO_COLOR is not
// set (no-color.org), or if CLICOLOR_FORCE is set.
func colours(w io.Writer) bool {
	switch {
	case os.Getenv("NO_COLOR") != "":
		return false
	case os.Getenv("CLICOLOR_FORCE") != "" && os.Getenv("CLICOLOR_FORCE") != "0":
		return true
	}
	return os.Getenv("TERM") != "dumb" && os.Getenv("CLICOLOR") != "0" && IsTerminal(w)
}

// Style is the style of a piece of text if colours are on. A colour never carries meaning that is
// not in the text.
type Style string

// The styles, as ECMA-48 writes them.
const (
	Plain  Style = ""
	Bold   Style = "1"
	Dim    Style = "2"
	Red    Style = "31"
	Green  Style = "32"
	Yellow Style = "33"
	Cyan   Style = "36"
	Invert Style = "7"
)

// Painter writes text with styles, or without if colours are off.
type Painter struct{ on bool }

// PainterFor returns the painter for a stream, which adds no colours unless it is a terminal.
func PainterFor(w io.Writer) Painter { return Painter{colours(w)} }

// Paint returns a text in a style.
func (p Painter) Paint(s Style, text string) string {
	if !p.on || s == Plain || text == "" {
		return text
	}
	return "\x1b[" + string(s) + "m" + text + "\x1b[0m"
}

// Cell is one field of a table.
type Cell struct {
	Text  string
	Style Style
}

// Text returns a cell.
func Text(text string, style Style) Cell { return Cell{text, style} }

// Table lays out rows in columns.
type Table struct {
	rows [][]Cell
}

// Add adds a row.
func (t *Table) Add(cells ...Cell) { t.rows = append(t.rows, cells) }

// Write prints the table. On a terminal, the columns are cut to fit its width, the widest column
// first.
func (t *Table) Write(w io.Writer) error {
	widths := t.widths(Width(w))
	paint := PainterFor(w)
	var out bytes.Buffer
	for _, row := range t.rows {
		for i, c := range row {
			if utf8.RuneCountInString(c.Text) > widths[i] {
				c.Text = OneLine(c.Text, widths[i])
			}
			out.WriteString(paint.Paint(c.Style, c.Text))
			if i < len(row)-1 {
				out.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c.Text)+columnGap))
			}
		}
		out.WriteByte('\n')
	}
	_, err := w.Write(out.Bytes())
	return err
}

const (
	columnGap   = 2 // characters between columns
	leastColumn = 4 // the minimum width of a column that is cut
)

// widths returns the number of characters of each column such that all of them fit into room
// characters. 0 means that the width is not limited.
func (t *Table) widths(room int) []int {
	var widths []int
	for _, row := range t.rows {
		for i, c := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(c.Text))
		}
	}
	if room == 0 {
		return widths
	}
	total := columnGap * (len(widths) - 1)
	for _, width := range widths {
		total += width
	}
	for ; total > room; total-- {
		widest := len(widths) - 1 // of equal columns the last, which is usually a description
		for i, width := range widths {
			if width > widths[widest] {
				widest = i
			}
		}
		if widths[widest] <= leastColumn {
			break
		}
		widths[widest]--
	}
	return widths
}

// defaultPager shows long text page by page, exits if the text fits on the screen, and keeps colours.
const defaultPager = "less"

// Paged calls print with the writer to print to. That is a pager if stdout is a terminal and
// $AIRLOCK_PAGER or $PAGER does not turn it off ("" or cat). Otherwise it is stdout.
func Paged(s *Streams, print func(io.Writer) error) error {
	if !IsTerminal(s.Out) {
		return print(s.Out)
	}
	var text bytes.Buffer
	if err := print(&terminalText{Buffer: &text, terminal: s.Out}); err != nil {
		return errors.Join(err, flush(s.Out, text.Bytes()))
	}
	command := pagerCommand()
	if command == nil {
		return flush(s.Out, text.Bytes())
	}
	command.Stdin, command.Stdout, command.Stderr = bytes.NewReader(text.Bytes()), s.Out, Behind(s.Err)
	if err := command.Start(); err != nil { // no such program
		return flush(s.Out, text.Bytes())
	}
	if err := command.Wait(); err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) && exit.ExitCode() != 127 { // the pager was started, and its user ended it
			return nil
		}
		return flush(s.Out, text.Bytes())
	}
	return nil
}

// terminalText buffers text for a terminal. It has the width and the colours of the terminal.
type terminalText struct {
	*bytes.Buffer
	terminal io.Writer
}

func flush(w io.Writer, text []byte) error {
	_, err := w.Write(text)
	return err
}

// pagerCommand returns the command of the pager, or nil if no pager is used.
func pagerCommand() *exec.Cmd {
	pager, set := os.LookupEnv("AIRLOCK_PAGER")
	if !set {
		pager, set = os.LookupEnv("PAGER")
	}
	if !set {
		pager = defaultPager
	}
	pager = strings.TrimSpace(pager)
	if pager == "" || pager == "cat" || os.Getenv("TERM") == "dumb" {
		return nil
	}
	command := exec.Command("/bin/sh", "-c", pager)
	command.Env = append(os.Environ(), "LESS="+cmp.Or(os.Getenv("LESS"), "FRX"))
	return command
}
