package escape_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// attack is one file under attacks: a program and its parsed header.
type attack struct {
	name      string // "network/tcp-ipv4"
	file      string // "network/tcp-ipv4.py"
	tries     string // the aim of the attack, one sentence
	stoppedBy string // the reason why it fails, one sentence
	want      []string
	foundBy   string // the error's source; empty for any
	known     []hole
	onHost    bool // the same program succeeds outside of a sandbox
	timeout   time.Duration
	source    string
}

// hole is known and open.
type hole struct {
	gain   string // the oracle's message; N matches any number
	driver string // the only driver that has it; "" for all
}

// wantNothing means that the program runs to its end and reaches nothing.
const wantNothing = "nothing"

// defaultTimeout is the wall time of an attack whose header names none. It is
// for busy machines: hardly one takes a second.
const defaultTimeout = 20 * time.Second

// comments are what a header's lines start with, by the file's ending.
var comments = map[string]string{".py": "#", ".sh": "#", ".mjs": "//"}

// attacks reads every attack, sorted by name.
func attacks(t *testing.T) []attack {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("attacks", "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	var all []attack
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		rel, err := filepath.Rel("attacks", file)
		if err != nil {
			t.Fatal(err)
		}
		one, err := parseAttack(filepath.ToSlash(rel), string(source))
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		all = append(all, one)
	}
	return all
}

// category is the directory of an attack.
func (a attack) category() string {
	category, _, _ := strings.Cut(a.name, "/")
	return category
}

// parseAttack reads the header: the comment lines at the top, each "key: value"
// or, further indented, the rest of the value above.
func parseAttack(file, source string) (attack, error) {
	ending := filepath.Ext(file)
	marker, ok := comments[ending]
	if !ok {
		return attack{}, fmt.Errorf("got the ending %q, want .py, .sh or .mjs", ending)
	}
	a := attack{name: strings.TrimSuffix(file, ending), file: file, timeout: defaultTimeout, source: source}
	fields, err := header(source, marker)
	if err != nil {
		return a, err
	}
	for key, value := range fields {
		if err := a.set(key, value); err != nil {
			return a, err
		}
	}
	if a.tries == "" || a.stoppedBy == "" || len(a.want) == 0 {
		return a, fmt.Errorf("the header needs the lines tries, stopped by and want")
	}
	return a, nil
}

func header(source, marker string) (map[string]string, error) {
	fields, last := map[string]string{}, ""
	for line := range strings.Lines(source) {
		text, ok := strings.CutPrefix(line, marker)
		if !ok {
			break
		}
		text = strings.TrimRight(text, "\n")
		if strings.HasPrefix(text, "  ") && last != "" {
			fields[last] += " " + strings.TrimSpace(text)
			continue
		}
		key, value, ok := strings.Cut(text, ":")
		last = strings.TrimSpace(key)
		if _, twice := fields[last]; !ok || twice {
			return nil, fmt.Errorf("the header's line %q is no new \"key: value\"", text)
		}
		fields[last] = strings.TrimSpace(value)
	}
	return fields, nil
}

func (a *attack) set(key, value string) (err error) {
	switch key {
	case "tries":
		a.tries = value
	case "stopped by":
		a.stoppedBy = value
	case "want":
		a.want = strings.Split(value, " or ")
		slices.Sort(a.want)
	case "on the host":
		a.onHost = value == "succeeds"
		if !a.onHost {
			err = fmt.Errorf("the header's line \"on the host\" says %q, want \"succeeds\"", value)
		}
	case "found by":
		a.foundBy = value
	case "known hole":
		a.know(value, "")
	case "timeout":
		a.timeout, err = time.ParseDuration(value)
	default:
		driver, ok := strings.CutPrefix(key, "known hole on ")
		if _, exists := drivers()[driver]; !ok || !exists {
			return fmt.Errorf("the header has an unknown line %q", key)
		}
		a.know(value, driver)
	}
	return err
}

func (a *attack) know(value, driver string) {
	for gain := range strings.SplitSeq(value, " and ") {
		a.known = append(a.known, hole{gain, driver})
	}
}

// knownOn returns the oracle's messages about the known holes of a driver.
func (a attack) knownOn(driver string) []string {
	var gains []string
	for _, h := range a.known {
		if h.driver == "" || h.driver == driver {
			gains = append(gains, h.gain)
		}
	}
	return gains
}

var numbers = regexp.MustCompile(`[0-9]+`)

// isKnown reports whether a gain equals the known one, except for numbers.
func isKnown(gain, known string) bool {
	return gain == known || numbers.ReplaceAllString(gain, "N") == known
}
