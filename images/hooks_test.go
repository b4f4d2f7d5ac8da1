package images

import "testing"

// Files of packages that Python would run before a program are not copied into an image.
func TestHooksOfPackagesAreLeftOut(t *testing.T) {
	for name, want := range map[string]string{
		"distutils-precedence.pth":             "",
		"a-1.data/purelib/a.pth":               "",
		"sitecustomize.py":                     "",
		"usercustomize/__init__.py":            "",
		"a-1.data/platlib/sitecustomize.py":    "",
		"matplotlib/mpl-data/model.pth":        "matplotlib/mpl-data/model.pth", // data, which Python does not look for
		"sitecustomize_of_another/__init__.py": "sitecustomize_of_another/__init__.py",
	} {
		if got := wheelTarget(name, nil); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}
