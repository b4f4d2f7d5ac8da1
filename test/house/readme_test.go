package house_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/internal/testenv"
)

func read(t *testing.T, parts ...string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(append([]string{testenv.RepoRoot(t)}, parts...)...))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// The first screen of the README shows how a run goes, and a session.
func TestPicturesOfTheReadme(t *testing.T) {
	first, _, _ := bytes.Cut(read(t, "README.md"), []byte("\n## "))
	shown := regexp.MustCompile(`!\[([^\]]+)\]\((docs/pictures/[^)]+\.svg)\)`).FindAllSubmatch(first, -1)
	if len(shown) != 2 {
		t.Fatalf("got %d pictures on the first screen, want 2 that say in words what they show", len(shown))
	}
	for _, match := range shown {
		file := string(match[2])
		picture := read(t, filepath.FromSlash(file))
		root, err := rootElement(picture)
		if err != nil || root != "svg" {
			t.Errorf("%s: got the element %q, %v, want svg", file, root, err)
		}
		if outside := regexp.MustCompile(`(?:href|src)="https?:|url\(["']?https?:|@import`).Find(
			picture); outside != nil {
			t.Errorf("%s loads something from elsewhere: %s", file, outside)
		}
	}
	for _, drawn := range []string{"run.svg", "architecture.svg"} {
		if !bytes.Contains(read(t, "docs", "pictures", drawn), []byte("prefers-color-scheme: dark")) {
			t.Errorf("%s has no dark colours", drawn)
		}
	}
	if !bytes.Contains(read(t, "Makefile"), []byte("docs/pictures/session.svg")) {
		t.Error("no command of the Makefile makes the recorded session")
	}
}

// rootElement reads all of an XML document and returns the name of its root.
func rootElement(text []byte) (string, error) {
	root := ""
	for decoder := xml.NewDecoder(bytes.NewReader(text)); ; {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return root, nil
		}
		if err != nil {
			return "", err
		}
		if start, ok := token.(xml.StartElement); ok && root == "" {
			root = start.Name.Local
		}
	}
}

// The comparison has a date, and for each product in its table a section on the product's
// advantages.
func TestComparison(t *testing.T) {
	page := string(read(t, "docs", "compare.md"))
	date := regexp.MustCompile(`on (\d{4}-\d{2}-\d{2})`).FindStringSubmatch(page)
	if date == nil {
		t.Fatal("the page does not say when it was written")
	}
	if _, err := time.Parse(time.DateOnly, date[1]); err != nil {
		t.Error(err)
	}
	sections := map[string]string{}
	for _, section := range strings.Split(page, "\n## ")[1:] {
		title, text, _ := strings.Cut(section, "\n")
		sections[strings.ToLower(title)] = text
	}
	rows := 0
	for _, row := range regexp.MustCompile(`(?m)^\| ([^|*]+) \|`).FindAllStringSubmatch(page, -1) {
		product := strings.ToLower(strings.Fields(row[1])[0])
		if product == "" || strings.HasPrefix(row[1], "-") {
			continue
		}
		rows++
		found := false
		for title, text := range sections {
			if strings.HasPrefix(title, product) {
				found = true
				if !strings.Contains(text, "**Better:**") {
					t.Errorf("the section %q does not say what is better there", title)
				}
			}
		}
		if !found {
			t.Errorf("the table has %q, and there is no section about it", row[1])
		}
	}
	if rows < 6 {
		t.Errorf("found %d products: the test checks next to nothing", rows)
	}
	if !strings.Contains(string(read(t, "README.md")), "(docs/compare.md)") {
		t.Error("the README does not lead to the comparison")
	}
}
