package images

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/images"
)

// Issue 27: an image that cannot be built does not prevent the others, and the error names it.
func TestBuildEach(t *testing.T) {
	broken := errors.New("the registry does not answer")
	for name, test := range map[string]struct {
		failing map[string]error
		want    []string // parts of the error and its hint
	}{
		"all are built": {},
		"one fails": {map[string]error{"node": broken},
			[]string{`image "node"`, "does not answer", "`airlock images build node`", "other images are built"}},
		"all fail": {map[string]error{"node": broken, "python": broken},
			[]string{`image "node"`, `image "python"`, "`airlock images build node python`"}},
		"a program is missing": {map[string]error{"python": &images.MissingToolError{Tool: "dpkg-deb",
			Package: "dpkg"}},
			[]string{`image "python"`, "apt-get install dpkg"}},
	} {
		t.Run(name, func(t *testing.T) {
			var tried []string
			err := buildEach(t.Context(), []string{"node", "python"}, func(image string) error {
				tried = append(tried, image)
				if cause := test.failing[image]; cause != nil {
					return fmt.Errorf("building image %q: %w", image, cause)
				}
				return nil
			})
			if !slices.Equal(tried, []string{"node", "python"}) {
				t.Errorf("built %q, want both", tried)
			}
			said := fmt.Sprint(err)
			var advised interface{ Hint() string }
			if errors.As(err, &advised) {
				said += advised.Hint()
			}
			for _, part := range test.want {
				if !strings.Contains(said, part) {
					t.Errorf("got %q, want %q in it", said, part)
				}
			}
			if (err != nil) != (test.failing != nil) {
				t.Errorf("got %v", err)
			}
		})
	}
	stopped, cancel := context.WithCancel(t.Context())
	n := 0
	_ = buildEach(stopped, []string{"node", "python"}, func(string) error { n++; cancel(); return stopped.Err() })
	if n != 1 {
		t.Errorf("%d images were built after the end, want none", n-1)
	}
}
