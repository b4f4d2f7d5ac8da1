package cleanup_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/airlock-mcp/airlock/internal/cleanup"
)

func TestStack(t *testing.T) {
	boom := errors.New("boom")
	tests := []struct {
		name string
		act  func(*cleanup.Stack)
		want []int
	}{
		{"releases run last first", func(*cleanup.Stack) {}, []int{3, 2, 1}},
		{"keep forgets them", func(s *cleanup.Stack) { s.Keep() }, nil},
		{"take hands them over", func(s *cleanup.Stack) { s.Take() }, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var s cleanup.Stack
			var got []int
			for i := 1; i <= 3; i++ {
				s.Add(func() error { got = append(got, i); return boom })
			}
			test.act(&s)
			err := s.Run()
			if !slices.Equal(got, test.want) {
				t.Errorf("released: got %v, want %v", got, test.want)
			}
			if errors.Is(err, boom) != (test.want != nil) {
				t.Errorf("error: got %v", err)
			}
			if again := s.Run(); again != nil {
				t.Errorf("second run: got %v, want nil", again)
			}
		})
	}
}
