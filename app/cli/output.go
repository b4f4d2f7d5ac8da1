package cli

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/airlock-mcp/airlock/internal/tty"
)

// behind returns what text for w is shown on in the end.
func behind(w io.Writer) io.Writer {
	switch w := w.(type) {
	case *terminalText:
		return w.terminal
	case *cleanWriter:
		return w.to
	}
	return w
}

// isTerminal reports whether w is a terminal.
func isTerminal(w io.Writer) bool {
	file, ok := behind(w).(*os.File)
	return ok && tty.Is(file)
}

// Widths of output in columns.
const (
	defaultWidth = 80 // of a terminal that does not say
	leastWidth   = 20 // what a table is laid out for at least
)

// width returns how many columns the terminal w has; 0 where w is none, so that
// nothing is cut for a program that reads.
func width(w io.Writer) int {
	file, ok := behind(w).(*os.File)
	if !ok || !isTerminal(file) {
		return 0
	}
	columns, _ := strconv.Atoi(os.Getenv("COLUMNS")) // what is no number counts as unset
	if size, err := tty.Control(file, func(fd int) (*unix.Winsize, error) { return unix.IoctlGetWinsize(fd, unix.TIOCGWINSZ) }); err == nil && size.Col > 0 {
		columns = int(size.Col)
	}
	if columns <= 0 {
		columns = defaultWidth
	}
	return max(columns, leastWidth)
}

// colours reports whether text for w is coloured: for terminals, unless NO_COLOR
// is set (no-color.org), and wherever CLICOLOR_FORCE is.
func colours(w io.Writer) bool {
	switch {
	case os.Getenv("NO_COLOR") != "":
		return false
	case os.Getenv("CLICOLOR_FORCE") != "" && os.Getenv("CLICOLOR_FORCE") != "0":
		return true
	}
	return os.Getenv("TERM") != "dumb" && os.Getenv("CLICOLOR") != "0" && isTerminal(w)
}

// style is how a piece of text looks where there are colours. A colour never
// means anything that the text does not say.
type style string

// The styles, as ECMA-48 writes them.
const (
	plain  style = ""
	bold   style = "1"
	dim    style = "2"
	red    style = "31"
	green  style = "32"
	yellow style = "33"
	cyan   style = "36"
	invert style = "7"
)

// painter writes text with styles, or without where there are no colours.
type painter struct{ on bool }

func painterFor(w io.Writer) painter { return painter{colours(w)} }

func (p painter) paint(s style, text string) string {
	if !p.on || s == plain || text == "" {
		return text
	}
	return "\x1b[" + string(s) + "m" + text + "\x1b[0m"
}

// cell is one field of a table.
type cell struct {
	text  string
	style style
}

// table lays out rows in columns.
type table struct {
	rows [][]cell
}

func (t *table) add(cells ...cell) { t.rows = append(t.rows, cells) }

// write prints the table. On a terminal its columns are cut to fit the width, the
// widest first.
func (t *table) write(w io.Writer) error {
	widths := t.widths(width(w))
	paint := painterFor(w)
	var out bytes.Buffer
	for _, row := range t.rows {
		for i, c := range row {
			if utf8.RuneCountInString(c.text) > widths[i] {
				c.text = oneLine(c.text, widths[i])
			}
			out.WriteString(paint.paint(c.style, c.text))
			if i < len(row)-1 {
				out.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c.text)+columnGap))
			}
		}
		out.WriteByte('\n')
	}
	_, err := w.Write(out.Bytes())
	return err
}

const (
	columnGap   = 2 // characters between columns
	leastColumn = 4 // what a column that is cut has at least
)

// widths returns how many characters each column has, so that all of them fit into
// room; 0 is room without end.
func (t *table) widths(room int) []int {
	var widths []int
	for _, row := range t.rows {
		for i, c := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(c.text))
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
		widest := len(widths) - 1 // the last one of those that are equal: it tells the rest
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

// defaultPager shows long text page by page, quits where it fits, and keeps colours.
const defaultPager = "less"

// paged calls print with where to print to: a pager, where stdout is a terminal
// and $AIRLOCK_PAGER or $PAGER does not say otherwise ("" or cat), else stdout.
func paged(s *streams, print func(io.Writer) error) error {
	if !isTerminal(s.out) {
		return print(s.out)
	}
	var text bytes.Buffer
	if err := print(&terminalText{Buffer: &text, terminal: s.out}); err != nil {
		return errors.Join(err, flush(s.out, text.Bytes()))
	}
	command := pagerCommand()
	if command == nil {
		return flush(s.out, text.Bytes())
	}
	command.Stdin, command.Stdout, command.Stderr = bytes.NewReader(text.Bytes()), s.out, behind(s.err)
	if err := command.Start(); err != nil { // no such program
		return flush(s.out, text.Bytes())
	}
	if err := command.Wait(); err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) && exit.ExitCode() != 127 { // it was there, and its user ended it
			return nil
		}
		return flush(s.out, text.Bytes())
	}
	return nil
}

// terminalText gathers text for a terminal, whose width and colours it has.
type terminalText struct {
	*bytes.Buffer
	terminal io.Writer
}

func flush(w io.Writer, text []byte) error {
	_, err := w.Write(text)
	return err
}

// pagerCommand returns the pager, or nil for none.
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

// progressDelay is how long something takes before a person is told that it goes on.
const progressDelay = 300 * time.Millisecond

// progress tells a person at the terminal what takes its time, until done is
// called. Elsewhere it says nothing.
func progress(s *streams, what string) (done func()) {
	if !isTerminal(s.err) {
		return func() {}
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		began := time.Now()
		wait := time.NewTimer(progressDelay)
		defer wait.Stop()
		shown := false
		for {
			select {
			case <-stop:
				if shown {
					fmt.Fprint(s.err, "\r\x1b[K")
				}
				return
			case <-wait.C:
				shown = true
				text := fmt.Sprintf("%s … %d s", what, int(time.Since(began).Seconds()))
				fmt.Fprintf(s.err, "\r\x1b[K%s", oneLine(text, width(s.err)-1))
				wait.Reset(time.Second)
			}
		}
	}()
	return func() { close(stop); <-stopped }
}
