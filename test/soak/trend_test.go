package main

import (
	"math/rand/v2"
	"testing"
)

// series makes sixty values of a shape with noise on top, the same in every run.
func series(seed uint64, noise float64, shape func(at float64) float64) []float64 {
	random := rand.New(rand.NewPCG(seed, 7))
	values := make([]float64, 60)
	for i := range values {
		values[i] = shape(float64(i)/59) + noise*random.NormFloat64()
	}
	return values
}

func TestGrowthIsToldFromNoise(t *testing.T) {
	q := quantity{"memory", "MB", 8, .05, false}
	for name, test := range map[string]struct {
		noise float64
		shape func(at float64) float64
		bad   bool
	}{
		"level":                        {1, func(float64) float64 { return 100 }, false},
		"level with much noise":        {40, func(float64) float64 { return 100 }, false},
		"without any noise":            {0, func(float64) float64 { return 100 }, false},
		"growth within what it may":    {1, func(at float64) float64 { return 100 + 5*at }, false},
		"growth":                       {1, func(at float64) float64 { return 100 + 20*at }, true},
		"growth under noise":           {5, func(at float64) float64 { return 100 + 20*at }, true},
		"growth without noise":         {0, func(at float64) float64 { return 100 + 20*at }, true},
		"decline":                      {1, func(at float64) float64 { return 100 - 20*at }, false},
		"one step within a large one":  {1, func(at float64) float64 { return 1000 + 30*at }, false},
		"a burst that ends":            {1, func(at float64) float64 { return 100 + 200*burst(at) }, false},
		"a step from which it is back": {0, func(at float64) float64 { return 100 + 50*burst(at) }, false},
	} {
		for seed := range uint64(100) {
			if growth, bad := q.grows(series(seed, test.noise, test.shape)); bad != test.bad {
				t.Errorf("%s, seed %d: growth of %.1f counts as bad: %v, want %v", name, seed, growth, bad, test.bad)
			}
		}
	}
}

// burst is 1 for a while in the middle.
func burst(at float64) float64 {
	if at > .5 && at < .6 {
		return 1
	}
	return 0
}

func TestShortSeriesShowNothing(t *testing.T) {
	q := quantity{"descriptors", "", 0, 0, false}
	for _, values := range [][]float64{nil, {1}, {1, 2}, {1, 2, 3}} {
		if _, bad := q.grows(values); bad {
			t.Errorf("%v counts as growth", values)
		}
	}
	if _, bad := q.grows([]float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}); !bad {
		t.Error("ten values of which each is larger do not count as growth")
	}
}
