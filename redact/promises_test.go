package redact_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// promises maps each row of the table "What is recognised" in docs/redaction.md to the tests that generate its
// cases: kinds, surroundings, encodings and quoting.
var promises = map[string][]string{
	"credentials that Airlock holds": {"TestHeldCredentialsInEncodings", "FuzzHeldNeverLeaves"},
	"tokens of 100 and more vendors": {"TestPublishedFormats", "TestTokensInSurroundings",
		"TestTokensThatAreGlued"},
	"keys":                    {"TestPublishedFormats", "TestTokensInSurroundings"},
	"credentials of requests": {"TestGeneratedPasswordsInAddresses", "TestSecretsInFilesAndProtocols"},
	"values with the name of a secret": {"TestGeneratedPasswordsInEveryQuoting", "TestSecretsInFilesAndProtocols",
		"TestGeneratedPasswordsInEncodings", "TestGeneratedSecretsInRecords"},
	"values under a vendor's name": {"TestTokensWithoutAForm"},
	"values of a key":              {"TestTokensWithoutAForm", "TestDataIsNotDamaged"},
	"the same value again":         {"TestValuesAreRemovedEverywhere"},
	"personal data":                {"TestPersonalNumbersInEncodings", "TestNumbersBesideUnderscores"},
	"The text around a value is preserved": {"TestWhatStandsAroundStays", "TestDataIsNotDamaged",
		"TestOrdinaryRecordsStay"},
}

// Issue 23: each promise of docs/redaction.md is tested with generated cases.
func TestPromisesHaveGenerators(t *testing.T) {
	page, err := os.ReadFile("../docs/redaction.md")
	if err != nil {
		t.Fatal(err)
	}
	_, recognised, _ := strings.Cut(string(page), "## What is recognised")
	recognised, _, _ = strings.Cut(recognised, "\n## ")
	rows := regexp.MustCompile(`(?m)^(?:\| )?\*\*([^*]+?):?\*\*(?: \||$)`).FindAllStringSubmatch(recognised, -1)
	if len(rows) < 8 {
		t.Fatalf("the table has %d rows", len(rows))
	}
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	var sources strings.Builder
	for _, file := range files {
		if strings.HasSuffix(file.Name(), "_test.go") {
			text, err := os.ReadFile(file.Name())
			if err != nil {
				t.Fatal(err)
			}
			sources.Write(text)
		}
	}
	var titles []string
	for _, row := range rows {
		titles = append(titles, row[1])
		if len(promises[row[1]]) == 0 {
			t.Errorf("docs/redaction.md promises %q, and no test generates its cases", row[1])
		}
		for _, name := range promises[row[1]] {
			if !strings.Contains(sources.String(), "func "+name+"(") {
				t.Errorf("%q is tested by %s, which does not exist", row[1], name)
			}
		}
	}
	for title := range promises {
		if !slices.Contains(titles, title) {
			t.Errorf("%q is not promised in docs/redaction.md", title)
		}
	}
}
