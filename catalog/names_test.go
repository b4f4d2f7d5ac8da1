package catalog

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestModuleName(t *testing.T) {
	for _, tt := range []struct{ name, id, want string }{
		{"dash", "google-drive", "google_drive"},
		{"upper case", "GitHub", "github"},
		{"run of others", "a.. b", "a_b"},
		{"leading digit", "3d-models", "_3d_models"},
		{"leading dash before a digit", "-3d", "_3d"},
		{"reserved word", "import", "import_"},
		{"path", "../../etc", "_etc"},
		{"no usable character", "数据", "_"},
		{"empty", "", "_"},
		{"dunder", "__init__", "_init_"},
	} {
		if got := ModuleName(tt.id); got != tt.want {
			t.Errorf("%s: ModuleName(%q): got %q, want %q", tt.name, tt.id, got, tt.want)
		}
	}
}

func TestModuleNamesWhereServersMeet(t *testing.T) {
	got := ModuleNames([]string{"google-drive", "google_drive", "Google Drive", "files"})
	if got["google_drive"] != "google_drive" {
		t.Errorf("the server of that very name: got %q, want google_drive", got["google_drive"])
	}
	if got["files"] != "files" {
		t.Errorf("a server alone: got %q, want files", got["files"])
	}
	for _, id := range []string{"google-drive", "Google Drive"} {
		if !regexp.MustCompile(`^google_drive_[0-9a-f]{6}$`).MatchString(got[id]) {
			t.Errorf("%q: got %q, want google_drive_ and six hex digits", id, got[id])
		}
	}
}

func TestModuleNamesAreDistinctIdentifiersInAnyOrder(t *testing.T) {
	identifier := regexp.MustCompile(`^[a-z_][a-z0-9_]{0,99}$`)
	rapid.Check(t, func(t *rapid.T) {
		part := rapid.SampledFrom([]string{"a", "A", "-", "_", "class", "3", ".", "é", "", strings.Repeat("x", 60)})
		id := rapid.Custom(func(t *rapid.T) string {
			return strings.Join(
				rapid.SliceOfN(part, 0, 4).Draw(t, "parts"), "")
		})
		ids := rapid.SliceOfDistinct(id, rapid.ID[string]).Draw(t, "ids")
		names := ModuleNames(ids)
		owner := map[string]string{}
		for id, name := range names {
			if !identifier.MatchString(name) || slices.Contains(pythonKeywords, name) {
				t.Fatalf("ModuleNames: %q: got %q, want an identifier", id, name)
			}
			if other, taken := owner[name]; taken {
				t.Fatalf("%q and %q: got one name %q, want two", id, other, name)
			}
			owner[name] = id
		}
		for id, name := range ModuleNames(rapid.Permutation(ids).Draw(t, "order")) {
			if names[id] != name {
				t.Fatalf("%q: got %q in another order, want %q", id, name, names[id])
			}
		}
	})
}
