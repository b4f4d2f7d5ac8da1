package code

import (
	"strings"
	"testing"
)

func TestPackagesAreNamedToTheModel(t *testing.T) {
	many := strings.Split(strings.Repeat("package-with-a-long-name ", 40), " ")
	for name, test := range map[string]struct {
		packages Packages
		want     string
	}{
		"none": {Packages{}, ""},
		"one language": {Packages{Python: []string{"numpy", "pandas>=2"}},
			" Installed for Python: numpy, pandas>=2."},
		"both languages": {Packages{Python: []string{"numpy"}, Node: []string{"lodash@^4.17.0"}},
			" Installed for Python: numpy. Installed for JavaScript: lodash@^4.17.0."},
	} {
		if got := test.packages.line(); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
	if got := (Packages{Node: many}).line(); len(got) > 2*maxPackagesLine || !strings.HasSuffix(got, "…") {
		t.Errorf("many: got %q", got)
	}
}
